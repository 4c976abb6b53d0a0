#pragma once

#include <cstddef>
#include <functional>

/// Processes tensors in pieces when loading, checking and exporting, so that no copy of a model or large tensor is
/// needed.
namespace mylos::train {

/// The most elements of a piece: 4 MiB of float.
inline constexpr std::size_t piece_elements = std::size_t{1} << 20;

/// Calls `use` for each piece of `size` elements, in order.
void for_each_piece(std::size_t size, const std::function<void(std::size_t first, std::size_t count)>& use);

}  // namespace mylos::train
