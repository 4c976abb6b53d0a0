#pragma once

#include "core/device.hpp"

#include <cstddef>
#include <cstdint>

/// Arrays over the rows of packed samples that follow from the samples' starts, computed where they are read, so that
/// the host neither fills nor copies numbers per row. Deterministic.
namespace mylos {

/// The samples of a batch, packed one after the other.
struct PackedSamples {
  ConstVector<std::size_t> starts;           ///< (S+1) first row of each sample; the last element is T
  ConstVector<std::size_t> first_positions;  ///< (S) position of each sample's first row; empty if all are 0
};

/// samples_of_rows (T) = sample of each row; positions (T) = its position in the sample. Empty samples have no rows.
/// Finds the samples by binary search, so that a few long samples occupy all threads, too. Errors:
/// std::invalid_argument if sizes do not match.
void locate_rows(const ExecutionSpace& space, const PackedSamples& samples, const Vector<std::int32_t>& positions,
                 const Vector<std::uint32_t>& samples_of_rows);

/// Groups the rows by position: group p holds row p of each sample that is long enough, in the order of the samples.
/// values (L) = 0, 1, ...; group_starts (L+1) = start of each group in `rows` (T). L is the length of the longest
/// sample and all positions begin at 0. O(S L) operations. Errors: std::invalid_argument if sizes do not match.
void group_rows_by_position(const ExecutionSpace& space, const ConstVector<std::size_t>& starts,
                            const Vector<std::int32_t>& values, const Vector<std::uint32_t>& group_starts,
                            const Vector<std::uint32_t>& rows);

}  // namespace mylos
