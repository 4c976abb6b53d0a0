#pragma once

#include "core/batch.hpp"
#include "core/device.hpp"
#include "core/random.hpp"

/// The sample and position of each row of a packed batch, for random numbers that do not depend on the packing.
namespace mylos {

struct DropoutRows {
  ConstVector<std::uint32_t> sample_ids;       ///< (S) position in the global batch
  ConstVector<std::uint32_t> samples_of_rows;  ///< (T) sample of each row
  ConstVector<std::int32_t> positions;         ///< (T) position within its sample

  /// Draws for the eight columns [8 group, 8 group + 8) of a packed row.
  KOKKOS_INLINE_FUNCTION DropoutDraw draw(const DropoutKey& key, std::size_t row, std::uint32_t group) const {
    return dropout_draw(key, sample_ids(samples_of_rows(row)), static_cast<std::uint32_t>(positions(row)), 0, group);
  }
};

inline DropoutRows dropout_rows(const Batch& batch) {
  return {batch.sample_ids(), batch.samples_of_rows(), batch.positions()};
}

}  // namespace mylos
