#pragma once

#include "app/report/text_table.hpp"
#include "train/engine/metrics.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

/// The table of a sweep's results, read from the files of its runs.
namespace mylos::app {

struct SweepLine {
  std::string name;               ///< of the point's directory
  nlohmann::ordered_json varied;  ///< the options of the point that vary
  std::string state = {};         ///< "finished", "at step 120 of 400", ...
  bool finished = false;
  std::vector<train::MetricKind> kinds = {};                  ///< kinds of its metrics
  train::Metrics metrics = {};                                ///< of its best evaluation
  std::string best_by = {};                                   ///< its --best-by
  double loss = std::numeric_limits<double>::quiet_NaN();     ///< mean over its last steps; NaN if it has none
  double seconds = std::numeric_limits<double>::quiet_NaN();  ///< sum over its steps
};

/// Returns a line for each point of the sweep in a directory. Lines are ordered by the metric that selects best/, or by
/// the loss if nothing was evaluated, the best first; points without one follow. Errors: those of read_sweep.
std::vector<SweepLine> sweep_lines(const std::filesystem::path& sweep);

std::size_t finished_points(const std::vector<SweepLine>& lines);

nlohmann::ordered_json sweep_json(const std::vector<SweepLine>& lines);
std::string sweep_table(const std::vector<SweepLine>& lines, TableFormat format);

}  // namespace mylos::app
