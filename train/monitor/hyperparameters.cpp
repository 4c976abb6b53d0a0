#include "train/monitor/hyperparameters.hpp"

#include "train/monitor/protocol_buffers.hpp"
#include "train/monitor/run_record.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

namespace mylos::train {
namespace {

constexpr std::string_view hparams_plugin = "hparams";
/// Options that runs are most often compared by. The tab sorts hyperparameters marked as different first, and shows the
/// first few.
constexpr std::array shown_first = {"learning-rate", "batch", "epochs", "precision", "mode", "ranks"};

// google.protobuf.Value { double number_value = 2; string string_value = 3; bool bool_value = 4; }
std::string encode_value(const nlohmann::json& value) {
  std::string message;
  if (value.is_boolean()) {
    put_integer(message, 4, value.get<bool>() ? 1 : 0);
  } else if (value.is_number()) {
    put_double(message, 2, value.get<double>());
  } else {
    put_bytes(message, 3, value.get<std::string>());
  }
  return message;
}

// enum DataType { DATA_TYPE_STRING = 1; DATA_TYPE_BOOL = 2; DATA_TYPE_FLOAT64 = 3; }
std::uint64_t data_type(const nlohmann::json& value) { return value.is_boolean() ? 2 : value.is_number() ? 3 : 1; }

// message Experiment { double time_created_secs = 3; repeated HParamInfo hparam_infos = 4;
//                      repeated MetricInfo metric_infos = 5; }
// message HParamInfo { string name = 1; DataType type = 4; bool differs = 7; }
// message MetricInfo { MetricName name = 1; }, message MetricName { string tag = 2; }
std::string encode_experiment(const Hyperparameters& configured, bool computes_on_gpus, double time) {
  std::string message;
  put_double(message, 3, time);
  for (const Hyperparameter& parameter : configured.all) {
    std::string info;
    put_bytes(info, 1, parameter.name);
    put_integer(info, 4, data_type(parameter.value));
    if (std::ranges::find(shown_first, parameter.name) != shown_first.end()) put_integer(info, 7, 1);
    put_bytes(message, 4, info);
  }
  const auto put_metric = [&](const std::string& tag) {
    std::string name, info;
    put_bytes(name, 2, tag);
    put_bytes(info, 1, name);
    put_bytes(message, 5, info);
  };
  std::ranges::for_each(configured.metrics, put_metric);
  if (computes_on_gpus) put_metric(energy_tag);
  return message;
}

// message SessionStartInfo { map<string, google.protobuf.Value> hparams = 1; double start_time_secs = 5; }; a map entry
// is a message { key = 1; value = 2; }.
std::string encode_session_start(std::span<const Hyperparameter> all, double time) {
  std::string message;
  for (const Hyperparameter& parameter : all) {
    std::string entry;
    put_bytes(entry, 1, parameter.name);
    put_bytes(entry, 2, encode_value(parameter.value));
    put_bytes(message, 1, entry);
  }
  put_double(message, 5, time);
  return message;
}

// message HParamsPluginData { Experiment experiment = 2; SessionStartInfo session_start_info = 3;
// SessionEndInfo session_end_info = 4; }; its version is 0, the default.
void add_as(EventFile& file, std::string_view tag, std::uint64_t field, std::string_view message) {
  std::string data;
  put_bytes(data, field, message);
  file.add_plugin_data(tag, hparams_plugin, data);
}

}  // namespace

std::string evaluation_tag(const std::string& metric) {
  return "eval/" + (metric == "validation_loss" ? "loss" : metric);
}

std::string rate_tag(const std::string& work) { return "perf/" + rate_key(work); }

Hyperparameters hyperparameters_of(const nlohmann::ordered_json& run) {
  std::vector<Hyperparameter> all;
  const auto add_members = [&](const nlohmann::ordered_json& object) {
    for (const auto& [name, value] : object.items()) {
      if (value.is_null() || value.is_structured()) continue;
      std::erase_if(all, [&repeated = name](const Hyperparameter& known) { return known.name == repeated; });
      all.push_back({name, value});
    }
  };
  add_members(run);
  if (run.contains("resolved")) add_members(run["resolved"]);
  const nlohmann::json description = run;
  std::vector<std::string> metrics;
  for (const MetricKind& kind : metric_kinds_of(description)) metrics.push_back(evaluation_tag(kind.name));
  std::ranges::reverse(metrics);
  metrics.insert(metrics.end(), {"train/epoch_loss", rate_tag(work_of(description))});
  return {std::move(all), std::move(metrics)};
}

void add_hyperparameters(EventFile& file, const Hyperparameters& configured, bool computes_on_gpus) {
  if (configured.all.empty()) return;
  add_as(file, "_hparams_/experiment", 2, encode_experiment(configured, computes_on_gpus, file.now()));
  add_as(file, "_hparams_/session_start_info", 3, encode_session_start(configured.all, file.now()));
}

// message SessionEndInfo { Status status = 1; double end_time_secs = 2; } with STATUS_SUCCESS = 1.
void add_session_end(EventFile& file) {
  std::string message;
  put_integer(message, 1, 1);
  put_double(message, 2, file.now());
  add_as(file, "_hparams_/session_end_info", 4, message);
}

}  // namespace mylos::train
