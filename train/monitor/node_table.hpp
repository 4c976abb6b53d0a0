#pragma once

#include "train/monitor/gpu_record.hpp"

#include <functional>
#include <span>
#include <string>
#include <vector>

/// Tables with a row for each node, and columns for what it does and what its GPUs do.
namespace mylos::train {

struct NodeRow {
  std::string name;
  std::size_t gpus = 0;
  QuantityStatistics<NodeReading> node = {};
  QuantityStatistics<GpuReading> gpu = {};  ///< over all its GPUs
  std::string note = {};                    ///< printed after the last column

  void add(const NodeRow& other) {
    gpus += other.gpus;
    node.add(other.node);
    gpu.add(other.gpu);
  }
};

/// Returns a row for each node, in order: statistics of the last readings, or of the `whole` run.
std::vector<NodeRow> node_rows(const GpuFollower::Nodes& nodes, const GpuFollower::Gpus& gpus, bool whole);

/// Formats a value in GiB, W or percent, without its unit.
std::string quantity_text(double value, Unit unit);

/// Returns the lines of a table, without line ends: headings first. `cell` formats statistics that are not empty.
/// Columns without values are left out.
std::vector<std::string> node_table(std::span<const NodeRow> rows,
                                    const std::function<std::string(const Statistics&, Unit)>& cell);

/// Returns newline-terminated lines for the end of a run: what reports the power of nodes, and mean and peak of each
/// value over all starts, of the first 8 nodes and of the others together. Empty if nothing was recorded.
std::string closing_table(const GpuFollower::Nodes& nodes, const GpuFollower::Gpus& gpus);

}  // namespace mylos::train
