#pragma once

#include "core/base/gpu_architecture.hpp"
#include "core/base/options/option.hpp"
#include "core/kernels/attention/attention_kernel.hpp"
#include "train/engine/train_config.hpp"

#include <any>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The complete configuration of a run, as recorded in run.json.
namespace mylos::tasks {

/// Returns whether a target of adapters is all of --lora-targets: all-linear, or a regular expression for whole names.
bool stands_alone(std::string_view target);

/// The adapters of a model on texts (LoRA).
struct AdapterSettings {
  std::size_t rank = 0;                           ///< 0 = none, unless `directory` has some
  std::optional<double> alpha;                    ///< nullopt = 2 rank
  double dropout = 0.0;                           ///< probability, for what adapters read
  std::vector<std::string> targets = {"q", "v"};  ///< names or ends of names of linear layers, or a pattern
  bool rslora = false;                            ///< divide alpha by the root of the rank
  std::vector<std::string> trained = {};          ///< modules trained whole
  std::filesystem::path directory;                ///< an adapter to go on from, or to merge
  std::string base;                               ///< the hub's name of the model; empty = its directory
};

/// The settings of every task. Each field documents its unit and an example.
struct TaskConfig {
  std::filesystem::path model;                        ///< resolved Hugging Face directory
  std::filesystem::path train;                        ///< training data; empty = no training
  std::filesystem::path dev;                          ///< evaluation data; empty = no evaluation
  std::size_t batch = 12;                             ///< samples per step over all ranks
  std::optional<std::size_t> train_limit, dev_limit;  ///< first N entries of the file
  double train_fraction = 1.0;                        ///< random part of the training samples of an epoch
  std::optional<double> dropout;                      ///< probability; nullopt = the model's
  std::optional<AttentionKernel> attention;           ///< nullopt = the fastest on the device (attention_choice.hpp)
  std::optional<AttentionKernel> recorded_attention;  ///< the kernel in the run that this one repeats
  std::string recorded_chat_time;                     ///< that run's time in conversations; empty = none
  std::filesystem::path attention_cache;              ///< directory of cached timings; empty = no cache
  GpuArchitecture planned_device = {};                ///< that a plan is for
  std::optional<Precision> export_precision;  ///< type of weights in best/ and last/; nullopt = export_precision()
  AdapterSettings adapters;
  bool do_train = false;  ///< switch of transformers' scripts; with do_eval,
  bool do_eval = false;   ///< selects the files used from a named data set
};

struct RunConfig {
  train::TrainConfig engine;
  TaskConfig task;
  std::any settings;  ///< settings specific to the task's kind (TaskKind::set_defaults)
};

/// Returns the settings of type Config, which must be that of the run's kind.
template <class Config>
const Config& settings_of(const RunConfig& run) {
  return std::any_cast<const Config&>(run.settings);
}
template <class Config>
Config& settings_of(RunConfig& run) {
  return std::any_cast<Config&>(run.settings);
}

/// Converts options of a kind's settings to options of a run, and appends them to `all`.
template <class Config>
void append_options(std::vector<Option<RunConfig>>& all, const std::vector<Option<Config>>& own) {
  for (const Option<Config>& option : own) {
    all.push_back(option_of_whole<RunConfig>(
        option, [](auto& run) -> auto& { return settings_of<Config>(run); }));
  }
}

}  // namespace mylos::tasks
