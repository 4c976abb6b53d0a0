#include "train/monitor/metrics_file.hpp"

#include "core/base/files/files.hpp"
#include "core/base/files/json.hpp"
#include "train/monitor/metrics_reader.hpp"

#include <filesystem>
#include <sstream>
#include <string>

namespace mylos::train {

using OrderedJson = nlohmann::ordered_json;

void MetricsFile::step(const StepReport& report) {
  OrderedJson line = {{"kind", step_kind},
                      {"step", report.step},
                      {"epoch", report.epoch},
                      {"loss", report.loss},
                      {"gradient_norm", report.gradient_norm},
                      {"learning_rate", report.learning_rate},
                      {work_.samples, report.sequences}};
  const std::size_t work = work_.count(report.tokens);
  line[work_.name] = work;
  line["seconds"] = report.seconds;
  line[rate_key(work_.name)] = per_second(static_cast<double>(work), report.seconds);
  line["memory"] = report.memory;
  line["sent"] = report.sent;
  if (report.loss_scale) {
    line["loss_scale"] = *report.loss_scale;
    line["skipped"] = report.skipped;
  }
  line["data_seconds"] = report.parts.data;
  if (report.parts.exchange) line["exchange_seconds"] = *report.parts.exchange;
  if (report.parts.update) line["update_seconds"] = *report.parts.update;
  append(std::move(line));
}

void MetricsFile::evaluation(const EvaluationReport& report) {
  OrderedJson line = {{"kind", evaluation_kind}, {"step", report.step}};
  for (const auto& [name, value] : report.metrics) line[name] = value;
  line["seconds"] = report.seconds;
  line["best"] = report.best;
  append(std::move(line));
}

void MetricsFile::checkpoint(const CheckpointReport& report) {
  if (!report.error.empty()) return;
  append({{"kind", checkpoint_kind},
          {"step", report.step},
          {"checkpoint", report.file.filename().string()},
          {"bytes", report.bytes},
          {"seconds", report.seconds}});
}

void MetricsFile::append(nlohmann::ordered_json line) {
  line["time"] = clock_();
  file_.append(line.dump() + "\n");
}

void cut_metrics(const std::filesystem::path& file, std::size_t step, bool evaluation_due) {
  std::error_code unreadable;  // reported by the call that reads the file
  if (!std::filesystem::exists(file, unreadable)) return;
  std::istringstream lines(read_text(file));
  std::string kept;
  for (std::string line; std::getline(lines, line);) {
    const auto row = try_parse_json(line);
    if (!is_metrics_row(row)) continue;
    const auto of_step = row["step"].get<std::size_t>();
    const bool is_repeated = of_step > step || (of_step == step && evaluation_due && is_evaluation_row(row));
    if (!is_repeated) kept += line + "\n";
  }
  write_text(file, kept);
}

}  // namespace mylos::train
