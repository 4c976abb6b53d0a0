#pragma once

#include "train/monitor/gpu_follower.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

/// A run's GPUs as mylos watch shows them.
namespace mylos::app {

/// A line of watch: the name in its column, and what there is to say.
std::string watch_line(std::string_view name, const std::string& text);

/// A line for each GPU; of more than 16 one for each node with the least, the middle and the most; of more than 16
/// nodes one for all of them and one for each of the 16 whose GPUs do least. `now` in seconds since 1970: a GPU of
/// which nothing was written for minutes is told. Empty where there are none.
std::string gpu_lines(const train::GpuFollower::Gpus& gpus, double now);

/// [{"node", "index", "name", "time", "utilization", "memory", "memory_total", "power"}]; null where it is not told.
nlohmann::ordered_json gpus_json(const train::GpuFollower::Gpus& gpus);

}  // namespace mylos::app
