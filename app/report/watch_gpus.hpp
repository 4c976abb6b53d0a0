#pragma once

#include "train/monitor/gpu_record.hpp"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <string_view>

/// Lines of `mylos watch` about nodes and GPUs.
namespace mylos::app {

/// Returns a line of watch: the name in the first column, then the text.
std::string watch_line(std::string_view name, const std::string& text);

/// Returns a table with a row for each node, which shows its CPU, memory and power and those of its GPUs: one value, or
/// the least, the mean and the most of several GPUs. For more than 16 nodes, the first row is for all of them, and rows
/// for the 16 nodes with the least utilized GPUs (or processors) follow. Up to 16 GPUs also have a line each. `now` is
/// in seconds since 1970; a line says if nothing was written about its node or GPU for minutes. Empty if nothing is
/// recorded.
std::string node_and_gpu_lines(const train::GpuFollower::Nodes& nodes, const train::GpuFollower::Gpus& gpus,
                               double now);

/// Returns [{"node", "time", "cpu", "memory", "power", "memory_total", "power_source"}]; null if not recorded.
nlohmann::ordered_json nodes_json(const train::GpuFollower::Nodes& nodes);

/// Returns [{"node", "index", "name", "time", "utilization", "memory", "memory_utilization", "power", "memory_total"}];
/// null if not recorded.
nlohmann::ordered_json gpus_json(const train::GpuFollower::Gpus& gpus);

}  // namespace mylos::app
