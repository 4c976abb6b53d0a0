#pragma once

#include "tasks/interface/run_config.hpp"

#include <nlohmann/json.hpp>

#include <filesystem>

namespace mylos::tasks {

/// A model stored in a checkpoint.
struct TrainedModel {
  std::filesystem::path model;   ///< directory with its configuration, or the name of built-in sizes
  RunConfig run = {};            ///< with the precisions of the training
  nlohmann::json resolved = {};  ///< defaults chosen by the run (Task::resolved), from its run.json, or null
};

}  // namespace mylos::tasks
