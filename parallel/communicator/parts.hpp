#pragma once

#include <cstddef>

namespace mylos::parallel {

/// An array in parts of equal size, one for each rank; the last ones are shorter where the size is not divided.
struct Parts {
  std::size_t count = 0;  ///< elements of the whole
  std::size_t part = 0;   ///< elements of a part that is not cut short

  /// Elements of piece `index` of part `rank`, `piece` elements a piece: where it begins in the whole, and its size.
  struct Piece {
    std::size_t begin = 0, size = 0;
  };
  Piece piece(std::size_t rank, std::size_t index, std::size_t piece) const;
  std::size_t pieces(std::size_t piece) const;
};
Parts divide(std::size_t count, std::size_t ranks);

}  // namespace mylos::parallel
