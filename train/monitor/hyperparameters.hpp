#pragma once

#include "train/monitor/event_file.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

/// The contents of TensorBoard's HPARAMS tab for a run, as messages of plugin_data.proto and api.proto in
/// tensorboard/plugins/hparams.
namespace mylos::train {

/// The tag of the scalar written at the end of a run on GPUs.
inline constexpr const char* energy_tag = "gpu/energy_kwh";

struct Hyperparameter {
  std::string name;
  nlohmann::json value;  ///< a number, boolean or string
};

struct Hyperparameters {
  std::vector<Hyperparameter> all;
  std::vector<std::string> metrics;  ///< tags of the scalars for comparing runs
};

/// Returns the tag of an evaluation's metric: "eval/f1"; for validation_loss "eval/loss".
std::string evaluation_tag(const std::string& metric);
/// Returns the tag of the rate of work: "perf/tokens_per_second" for "tokens".
std::string rate_tag(const std::string& work);

/// Extracts the hyperparameters from a run.json: its options and resolved values, without nulls, objects and arrays.
/// The metrics are those of its evaluations in reverse order, because a task names losses before scores, followed by
/// the loss and speed of training.
Hyperparameters hyperparameters_of(const nlohmann::ordered_json& run);

/// Adds the hyperparameters to `file`; does nothing if there are none. The scalars of the metrics are written
/// elsewhere. With `computes_on_gpus` the GPU energy is an additional metric.
void add_hyperparameters(EventFile& file, const Hyperparameters& configured, bool computes_on_gpus);
/// Records that the run is complete.
void add_session_end(EventFile& file);

}  // namespace mylos::train
