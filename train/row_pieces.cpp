#include "train/row_pieces.hpp"

#include <algorithm>
#include <vector>

namespace mylos::train {

void read_in_pieces(const RowReader& read_row, const std::string& name, std::size_t size,
                    const std::function<void(std::span<const float> values)>& take) {
  std::vector<float> piece;
  for (std::size_t first = 0; first < size; first += piece.size()) {
    piece.resize(std::min(piece_elements, size - first));
    read_row(name, first, piece);
    take(piece);
  }
}

}  // namespace mylos::train
