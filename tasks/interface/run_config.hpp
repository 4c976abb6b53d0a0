#pragma once

#include "core/kernels/attention.hpp"
#include "train/engine/train_config.hpp"

#include <any>
#include <cstddef>
#include <filesystem>
#include <optional>

/// Everything a run is told, as run.json records it.
namespace mylos::tasks {

/// What every task is told. Each field says its unit and an example.
struct TaskConfig {
  std::filesystem::path model;                        ///< resolved Hugging Face directory
  std::filesystem::path train;                        ///< what is trained on; empty = no training
  std::filesystem::path dev;                          ///< what is evaluated on; empty = nothing
  std::size_t batch = 12;                             ///< samples a step over all ranks
  std::optional<std::size_t> train_limit, dev_limit;  ///< the first N entries of the file
  std::optional<double> dropout;                      ///< probability; empty = the model's
  AttentionKernel attention = AttentionKernel::portable;
  bool do_train = false;  ///< what scripts of transformers have to be told,
  bool do_eval = false;   ///< and what of a named data set's files is read
};

struct RunConfig {
  train::TrainConfig engine;
  TaskConfig task;
  std::any settings;  ///< those of the task's kind alone (TaskKind::set_defaults)
};

}  // namespace mylos::tasks
