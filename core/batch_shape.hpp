#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace mylos {

/// The size of a batch. Memory is planned from this alone.
struct BatchShape {
  std::size_t samples = 0;  ///< S, the number of samples
  std::size_t rows = 0;     ///< T, the number of rows of all samples
  std::size_t longest = 0;  ///< number of rows of the longest sample

  bool operator==(const BatchShape&) const = default;
};

/// Returns shapes of batches, the most frequent first. It may take as long as looking at an epoch.
using BatchShapes = std::function<std::vector<BatchShape>()>;

}  // namespace mylos
