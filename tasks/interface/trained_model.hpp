#pragma once

#include "nn/model.hpp"
#include "tasks/interface/run_config.hpp"
#include "train/engine/model_exporter.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>

namespace mylos::tasks {

/// A model stored in a checkpoint.
struct TrainedModel {
  std::filesystem::path model;   ///< directory with its configuration, or the name of built-in sizes
  RunConfig run = {};            ///< with the precisions of the training
  nlohmann::json resolved = {};  ///< defaults chosen by the run (Task::resolved), from its run.json, or null
  bool checks_base = false;      ///< the base of adapters is read, for its checksum
};

/// A model from a checkpoint: its network, without weights, and the exporter of its tensors.
struct ExportedModel {
  std::unique_ptr<nn::Model> network;
  std::unique_ptr<train::ModelExporter> exporter;
  std::optional<std::uint64_t> base_checksum = {};  ///< train::adapted_checksum of adapters' base, if it was asked for
};

}  // namespace mylos::tasks
