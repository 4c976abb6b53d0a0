#pragma once

#include <cstddef>
#include <functional>

/// Rows are loaded, looked at and exported in pieces, so that no copy of a model or of a large tensor stands in memory.
namespace mylos::train {

/// Elements of a piece at most: 4 MiB.
inline constexpr std::size_t piece_elements = std::size_t{1} << 20;

/// Calls `use` for the pieces of `size` elements, in order.
void for_each_piece(std::size_t size, const std::function<void(std::size_t first, std::size_t count)>& use);

}  // namespace mylos::train
