#pragma once

#include "core/base/files/json.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>
#include <vector>

/// Reads a recorded order of training (--order), to replay the run of another program.
namespace mylos::tasks {

/// Appends the samples that an entry of a step names to `step`; `line` is the file and line number for errors.
using OrderEntry = std::function<void(const mylos::Json& entry, std::string_view line, std::vector<std::size_t>& step)>;

/// Reads JSON lines, one step per line, each a list of entries. `entry` describes an entry in errors: "[question id,
/// window index]". Returns the samples of each step. Errors: std::runtime_error naming the line.
std::vector<std::vector<std::size_t>> read_order_file(const FileReader& files, const std::filesystem::path& path,
                                                      std::string_view entry, const OrderEntry& take);

/// Returns a checksum of the samples of each step.
std::uint32_t order_checksum(const std::vector<std::vector<std::size_t>>& order);

}  // namespace mylos::tasks
