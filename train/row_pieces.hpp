#pragma once

#include "train/task.hpp"

#include <functional>
#include <span>
#include <string>

/// Rows in pieces, so that a model is exported without a copy of it in memory.
namespace mylos::train {

/// Elements of a piece at most: 4 MiB.
inline constexpr std::size_t piece_elements = std::size_t{1} << 20;

/// Gives `take` the `size` values of the row called `name`, in order and in pieces.
void read_in_pieces(const RowReader& read_row, const std::string& name, std::size_t size,
                    const std::function<void(std::span<const float> values)>& take);

}  // namespace mylos::train
