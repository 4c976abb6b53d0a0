#pragma once

#include "core/base/json.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>
#include <vector>

/// A recorded order of training (--order), for replaying another program's run.
namespace mylos::tasks {

/// Appends the samples that an entry of a step names; `line` is the file and the line, for errors.
using OrderEntry = std::function<void(const mylos::Json& entry, std::string_view line, std::vector<std::size_t>& step)>;

/// Reads JSON lines, one step a line, each a list of entries; `entry` says in errors what one is: "[question id, window
/// index]". Returns samples step by step. Errors: std::runtime_error naming the line.
std::vector<std::vector<std::size_t>> read_order_file(const std::filesystem::path& path, std::string_view entry,
                                                      const OrderEntry& take);

/// Checksum of the samples of each step.
std::uint32_t order_checksum(const std::vector<std::vector<std::size_t>>& order);

}  // namespace mylos::tasks
