#pragma once

#include "core/base/option.hpp"
#include "core/kernels/attention.hpp"
#include "train/engine/train_config.hpp"

#include <any>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <vector>

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
  std::optional<Precision> export_precision;  ///< of the weights in best/ and last/; empty = see export_precision()
  bool do_train = false;                      ///< what scripts of transformers have to be told,
  bool do_eval = false;                       ///< and what of a named data set's files is read
};

struct RunConfig {
  train::TrainConfig engine;
  TaskConfig task;
  std::any settings;  ///< those of the task's kind alone (TaskKind::set_defaults)
};

/// The settings of the kind whose struct they are.
template <class Config>
const Config& settings_of(const RunConfig& run) {
  return std::any_cast<const Config&>(run.settings);
}
template <class Config>
Config& settings_of(RunConfig& run) {
  return std::any_cast<Config&>(run.settings);
}

/// Options of a kind's struct as options of a run, appended to `all`.
template <class Config>
void append_options(std::vector<Option<RunConfig>>& all, const std::vector<Option<Config>>& own) {
  for (const Option<Config>& option : own) {
    all.push_back(option_of_whole<RunConfig>(
        option, [](auto& run) -> auto& { return settings_of<Config>(run); }));
  }
}

}  // namespace mylos::tasks
