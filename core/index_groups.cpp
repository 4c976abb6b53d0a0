#include "core/index_groups.hpp"

#include "core/base/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace mylos {

void IndexGrouper::group(std::string_view name, std::span<const std::int32_t> indices) {
  values_.clear();
  starts_.clear();
  rows_.resize(indices.size());
  if (!indices.empty()) {
    const auto [smallest, largest] = std::ranges::minmax(indices);
    require(smallest >= 0, fmt::format("batch: \"{}\" has the index {}; indices begin at 0", name, smallest));
    const std::size_t needed = static_cast<std::size_t>(largest) + 1;
    if (next_.size() < needed) next_.resize(needed, 0);
    count(indices);
    start_groups();
    place(indices);
  }
  starts_.push_back(static_cast<std::uint32_t>(indices.size()));
}

void IndexGrouper::count(std::span<const std::int32_t> indices) {
  for (const std::int32_t index : indices) ++next_[static_cast<std::size_t>(index)];
}

void IndexGrouper::start_groups() {
  std::uint32_t start = 0;
  for (std::size_t value = 0; value < next_.size(); ++value) {
    if (next_[value] == 0) continue;
    values_.push_back(static_cast<std::int32_t>(value));
    starts_.push_back(start);
    start += std::exchange(next_[value], start);
  }
}

void IndexGrouper::place(std::span<const std::int32_t> indices) {
  for (std::uint32_t row = 0; row < indices.size(); ++row) {
    rows_[next_[static_cast<std::size_t>(indices[row])]++] = row;
  }
  for (const std::int32_t value : values_) next_[static_cast<std::size_t>(value)] = 0;
}

}  // namespace mylos
