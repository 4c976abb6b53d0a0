#pragma once

#include <nlohmann/json.hpp>

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

/// A run as its files tell it, while it goes on or afterwards; read by anybody, locked by nobody.
namespace mylos::train {

struct RunRecord {
  std::filesystem::path directory;
  nlohmann::json run;                            ///< run.json
  std::vector<nlohmann::json> steps = {};        ///< of metrics.jsonl, in its order
  std::vector<nlohmann::json> evaluations = {};  ///< the same
  std::vector<nlohmann::json> checkpoints = {};  ///< the same
  std::string checkpoint = {};                   ///< name of the latest one; empty = none
  std::size_t checkpoint_bytes = 0;
  double checkpoint_age = 0.0;  ///< seconds since it was written
  double age = 0.0;             ///< seconds since something was written to metrics.jsonl or run.json
  bool has_metrics = false;     ///< metrics.jsonl is there
  std::size_t unreadable = 0;   ///< lines of it that are none, as the last one may be while it is written
  bool finished = false;

  /// Steps of the whole run, and how many of them are done.
  std::size_t planned_steps() const;
  std::size_t done_steps() const;
  /// Seconds that the steps still to come take at the median pace of the last ones; negative where nothing says.
  double seconds_left() const;
};

/// The number in a line of metrics.jsonl; not a number where it is absent, or null because it was not finite.
double number_of(const nlohmann::json& row, const char* name);

/// Reads the directory of a run. A last line that is still being written is left out. Errors: std::runtime_error where
/// there is no run.json, or it is not one.
RunRecord read_run(const std::filesystem::path& directory);

}  // namespace mylos::train
