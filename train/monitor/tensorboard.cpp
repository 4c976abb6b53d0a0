#include "train/monitor/tensorboard.hpp"

#include "core/base/process/process.hpp"
#include "core/device.hpp"
#include "train/monitor/metrics_reader.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
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

}  // namespace mylos::train
