#pragma once

#include "train/monitor/gpu_follower.hpp"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <string_view>

/// GPU lines of `mylos watch`.
namespace mylos::app {

/// Returns a line of watch: the name in the first column, then the text.
std::string watch_line(std::string_view name, const std::string& text);

/// Returns one line per GPU. For more than 16 GPUs, returns one line per node with the minimum, median and maximum; for
/// more than 16 nodes, one line for all of them and one for each of the 16 nodes with the least utilized GPUs. `now` is
/// in seconds since 1970; the line of a GPU says if nothing was written about it for minutes. Empty if there are no
/// GPUs.
std::string gpu_lines(const train::GpuFollower::Gpus& gpus, double now);

/// Returns [{"node", "index", "name", "time", "utilization", "memory", "memory_total", "power"}]; null if not recorded.
nlohmann::ordered_json gpus_json(const train::GpuFollower::Gpus& gpus);

}  // namespace mylos::app
