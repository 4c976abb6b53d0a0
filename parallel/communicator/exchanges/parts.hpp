#pragma once

#include <algorithm>
#include <cstddef>

namespace mylos::parallel {

/// An array divided into parts of equal size, one per rank. The last parts are shorter if the size is not divisible.
struct Parts {
  std::size_t count = 0;  ///< elements of the whole array
  std::size_t part = 0;   ///< elements of a full part

  /// Piece `index` of part `rank`, for pieces of `piece` elements: its begin in the whole array, and its size.
  struct Piece {
    std::size_t begin = 0, size = 0;
  };
  constexpr Piece piece(std::size_t rank, std::size_t index, std::size_t piece) const {
    const std::size_t part_end = std::min(count, (rank + 1) * part);
    const std::size_t begin = std::min(part_end, rank * part + index * piece);
    return {begin, std::min(piece, part_end - begin)};
  }
  constexpr std::size_t pieces(std::size_t piece) const { return (part + piece - 1) / piece; }
};
constexpr Parts divide(std::size_t count, std::size_t ranks) { return {count, (count + ranks - 1) / ranks}; }

}  // namespace mylos::parallel
