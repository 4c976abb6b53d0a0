#include "train/engine/pieces.hpp"

#include <algorithm>

namespace mylos::train {

void for_each_piece(std::size_t size, const std::function<void(std::size_t first, std::size_t count)>& use) {
  for (std::size_t first = 0; first < size; first += piece_elements) use(first, std::min(piece_elements, size - first));
}

}  // namespace mylos::train
