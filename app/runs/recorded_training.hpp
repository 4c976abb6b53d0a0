#pragma once

#include "app/options/arguments.hpp"
#include "app/runs/prepared_run.hpp"
#include "train/engine/report.hpp"
#include "train/monitor/profile.hpp"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

/// Trains with everything that shows or records the progress of `mylos train`.
namespace mylos::app {

struct RecordedTraining {
  train::RunResult result;
  train::Profile profile;
  std::string nodes;                   ///< on the first rank, lines about what nodes and GPUs did
  std::vector<std::string> unwritten;  ///< on the first rank, lines about records missing from the run's files
};

/// Trains, shows the progress, and writes metrics.jsonl, TensorBoard's files and records of nodes and GPUs to the
/// output directory, which must have been started with `description`, the run.json. Collective. Errors: those of
/// Trainer::run.
RecordedTraining train_and_record(const TrainRank& rank, const Arguments& arguments, PreparedRun& run,
                                  const nlohmann::ordered_json& description);

}  // namespace mylos::app
