#include "train/engine/task.hpp"

#include "core/base/error.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace mylos::train {

void TensorWriter::operator()(const std::string& name, std::span<const float> values) const {
  take_(name, [&](std::size_t first, std::span<float> piece) {
    require(first <= values.size() && piece.size() <= values.size() - first,
            fmt::format("tensor {}: values {} to {} of {}", name, first, first + piece.size(), values.size()));
    std::ranges::copy(values.subspan(first, piece.size()), piece.begin());
  });
}

}  // namespace mylos::train
