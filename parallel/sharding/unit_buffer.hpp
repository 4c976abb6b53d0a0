#pragma once

#include "core/parameter_store.hpp"
#include "parallel/communicator/communicator.hpp"

#include <cstddef>

namespace mylos::parallel {

/// Returns the buffer of a unit without the padding at its end, which need not be exchanged. `all` holds the unit's
/// capacity, as elements or as bytes. With many ranks a small unit consists mainly of padding.
inline Buffer without_padding(Buffer all, const ParameterStore& store, std::size_t unit) {
  if (all.count > 0) all.count = all.count / store.capacity(unit) * store.table().units()[unit].size;
  return all;
}

}  // namespace mylos::parallel
