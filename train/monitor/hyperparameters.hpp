#pragma once

#include "train/monitor/event_file.hpp"

#include <nlohmann/json.hpp>

#include <span>
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

/// Of a run.json: its options and what was resolved, without what has no value.
std::vector<Hyperparameter> hyperparameters_of(const nlohmann::ordered_json& run);

/// What the run is told; its metrics are scalars that are written anyway. With `computes_on_gpus` their energy is one.
void add_hyperparameters(EventFile& file, std::span<const Hyperparameter> all, bool computes_on_gpus);
/// The run came to its end.
void add_session_end(EventFile& file);

}  // namespace mylos::train
