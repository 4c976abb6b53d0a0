#include "parallel/communicator/parts.hpp"

#include <algorithm>

namespace mylos::parallel {

Parts::Piece Parts::piece(std::size_t rank, std::size_t index, std::size_t piece) const {
  const std::size_t part_end = std::min(count, (rank + 1) * part);
  const std::size_t begin = std::min(part_end, rank * part + index * piece);
  return {begin, std::min(piece, part_end - begin)};
}

std::size_t Parts::pieces(std::size_t piece) const { return (part + piece - 1) / piece; }

Parts divide(std::size_t count, std::size_t ranks) { return {count, (count + ranks - 1) / ranks}; }

}  // namespace mylos::parallel
