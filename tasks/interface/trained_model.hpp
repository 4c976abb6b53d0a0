#pragma once

#include "nn/model.hpp"
#include "tasks/interface/run_config.hpp"
#include "train/engine/model_exporter.hpp"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <memory>

namespace mylos::tasks {

/// A model stored in a checkpoint.
struct TrainedModel {
  std::filesystem::path model;   ///< directory with its configuration, or the name of built-in sizes
  RunConfig run = {};            ///< with the precisions of the training
  nlohmann::json resolved = {};  ///< defaults chosen by the run (Task::resolved), from its run.json, or null
};

/// A model from a checkpoint: its network, without weights, and the exporter of its tensors.
struct ExportedModel {
  std::unique_ptr<nn::Model> network;
  std::unique_ptr<train::ModelExporter> exporter;
};

}  // namespace mylos::tasks
