#pragma once

#include "train/monitor/event_file.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

/// What TensorBoard's HPARAMS tab shows of a run, as messages of tensorboard/plugins/hparams/plugin_data.proto and
/// api.proto beside it.
namespace mylos::train {

/// The scalar that a run on GPUs ends with.
inline constexpr const char* energy_tag = "gpu/energy_kwh";

struct Hyperparameter {
  std::string name;
  nlohmann::json value;  ///< a number, a truth value or a text
};

struct Hyperparameters {
  std::vector<Hyperparameter> all;
  std::vector<std::string> metrics;  ///< tags of scalars that runs are compared by
};

/// The tag of an evaluation's metric: "eval/f1"; that of validation_loss is "eval/loss".
std::string evaluation_tag(const std::string& metric);
/// The tag of what steps do a second: "perf/tokens_per_second" of "tokens".
std::string rate_tag(const std::string& work);

/// Of a run.json: its options and what was resolved, without what has no value. The metrics are those of its
/// evaluations, scores before losses, which a task names first; then the loss and speed of its training.
Hyperparameters hyperparameters_of(const nlohmann::ordered_json& run);

/// Does nothing where `told` has no hyperparameter. The scalars that are its metrics are written by others; with
/// `computes_on_gpus` their energy is one more.
void add_hyperparameters(EventFile& file, const Hyperparameters& told, bool computes_on_gpus);
/// The run came to its end.
void add_session_end(EventFile& file);

}  // namespace mylos::train
