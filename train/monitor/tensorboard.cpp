#include "train/monitor/tensorboard.hpp"

#include "core/base/process/process.hpp"
#include "core/device.hpp"
#include "train/monitor/metrics_reader.hpp"
#include "train/monitor/run_record.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

namespace mylos::train {
namespace {

constexpr double least_interval = 10.0;     // least seconds between two points of a node or a GPU,
constexpr double seconds_a_reading = 0.15;  // more with many, so that they add about 1 KiB per second to the file,
constexpr double rest_for_reading = 99.0;   // and with a slow disk, so that reading takes a hundredth of the time

/// Restores the plotted values of a step from its row in metrics.jsonl.
StepReport step_of(const nlohmann::json& row, const WorkKind& work) {
  StepReport report;
  report.step = row["step"].get<std::size_t>();
  report.loss = number_of(row, "loss");
  report.gradient_norm = number_of(row, "gradient_norm");
  report.learning_rate = number_of(row, "learning_rate");
  report.tokens = row.value(work.name, std::size_t{0}) * work.rows;
  report.seconds = number_of(row, "seconds");
  report.memory = row.value("memory", std::size_t{0});
  if (row.contains("loss_scale")) report.loss_scale = number_of(row, "loss_scale");
  return report;
}

template <class Reading>
void add_recent(const std::string& prefix, const Followed<Reading>& followed, std::vector<Scalar>& scalars) {
  for (std::size_t i = 0; i < quantities<Reading>.size(); ++i) {
    const Statistics& recent = followed.recent[i];
    if (!recent.empty()) scalars.push_back({prefix + quantities<Reading>[i].name, recent.mean()});
  }
}

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

TensorBoard::TensorBoard(const std::filesystem::path& run, Hyperparameters configured, Notice notice)
    : TensorBoard(run / event_file_name(), seconds_since_1970, std::move(configured), std::move(notice)) {}

TensorBoard::TensorBoard(const std::filesystem::path& file, EventFile::Clock clock, Hyperparameters configured,
                         Notice notice)
    : file_(file, std::move(clock), std::move(notice)),
      configured_(std::move(configured)),
      metrics_(file.parent_path() / "metrics.jsonl"),
      gpus_(file.parent_path()) {}

void TensorBoard::start(const RunStart& run) {
  work_ = run.work;
  steps_per_epoch_ = run.steps_per_epoch;
  last_step_ = run.first_step;
  // Also in the first file: TensorBoard honours such a record only after another. It voids whole steps, so the step of
  // a repeated evaluation is written again.
  file_.add_session_start(run.first_step + (run.evaluation_due ? 0 : 1));
  take_earlier_steps(run);
  gpus_.update();  // reads the energy of earlier starts; their samples are in their own files
  add_hyperparameters(file_, configured_, !runs_on_host);
}

void TensorBoard::step(const StepReport& report) {
  write_step(report);
  last_step_ = report.step;
  epoch_losses_ += report.loss;
  ++epoch_steps_;
  if (steps_per_epoch_ > 0 && report.step % steps_per_epoch_ == 0) write_epoch_loss();
  if (file_.now() >= gpus_due_) write_gpus(report.step);
}

void TensorBoard::evaluation(const EvaluationReport& report) {
  std::vector<Scalar> scalars;
  for (const auto& [name, value] : report.metrics) scalars.push_back({evaluation_tag(name), value});
  file_.add_scalars(report.step, scalars);
}

std::optional<double> TensorBoard::close(bool ended) {
  write_gpus(last_step_);
  const std::optional<double> joules = gpus_.joules();
  if (joules) file_.add_scalars(last_step_, std::array{Scalar{energy_tag, kilowatt_hours(*joules)}});
  if (ended) write_epoch_loss();
  if (ended && !configured_.all.empty()) add_session_end(file_);
  return joules;
}

void TensorBoard::write_step(const StepReport& report) {
  const auto work = static_cast<double>(work_.count(report.tokens));
  std::vector<Scalar> scalars = {{"train/loss", report.loss},
                                 {"train/gradient_norm", report.gradient_norm},
                                 {"train/learning_rate", report.learning_rate},
                                 {rate_tag(work_.name), per_second(work, report.seconds)},
                                 {"perf/memory", static_cast<double>(report.memory)}};
  if (report.loss_scale) scalars.push_back({"train/loss_scale", *report.loss_scale});
  file_.add_scalars(report.step, scalars);
}

/// Writes the means of the samples since the last call.
void TensorBoard::write_gpus(std::size_t step) {
  const double begin = file_.now();
  gpus_.update();
  std::vector<Scalar> scalars;
  for (const auto& [name, node] : gpus_.nodes()) add_recent(fmt::format("node/{}/", name), node, scalars);
  for (const auto& [location, gpu] : gpus_.gpus()) {
    add_recent<GpuReading>(fmt::format("gpu/{}/{}/", location.first, location.second), gpu, scalars);
  }
  if (!scalars.empty()) file_.add_scalars(step, scalars);
  const double end = file_.now(), followed = static_cast<double>(gpus_.gpus().size() + gpus_.nodes().size());
  gpus_due_ = end + std::max({least_interval, seconds_a_reading * followed, rest_for_reading * (end - begin)});
}

/// Reads the losses of the epoch's steps from earlier starts, and writes the step of a repeated evaluation again.
void TensorBoard::take_earlier_steps(const RunStart& run) {
  const std::size_t repeated = run.evaluation_due ? 1 : 0, before = run.first_step - std::min(run.first_step, repeated);
  epoch_begin_ = run.steps_per_epoch > 0 ? before / run.steps_per_epoch * run.steps_per_epoch : 0;
  epoch_losses_ = 0.0;
  epoch_steps_ = 0;
  if (run.first_step == epoch_begin_) return;
  MetricsReader(metrics_).read([this, &run](nlohmann::json&& row) {
    const auto step = row["step"].get<std::size_t>();
    if (!is_step_row(row) || step <= epoch_begin_ || step > run.first_step) return;
    if (run.evaluation_due && step == run.first_step) write_step(step_of(row, work_));
    epoch_losses_ += number_of(row, "loss");
    ++epoch_steps_;
  });
  if (run.steps_per_epoch > 0 && run.first_step % run.steps_per_epoch == 0) write_epoch_loss();
}

/// Writes nothing if the losses of some of its steps are unknown.
void TensorBoard::write_epoch_loss() {
  if (epoch_steps_ > 0 && epoch_steps_ == last_step_ - epoch_begin_) {
    const std::array scalars = {Scalar{"train/epoch_loss", epoch_losses_ / static_cast<double>(epoch_steps_)}};
    file_.add_scalars(last_step_, scalars);
  }
  epoch_begin_ = last_step_;
  epoch_losses_ = 0.0;
  epoch_steps_ = 0;
}

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
