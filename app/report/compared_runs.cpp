#include "app/report/compared_runs.hpp"

#include "core/base/error.hpp"
#include "core/base/json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

namespace mylos::app {
namespace {

using Json = nlohmann::ordered_json;

double middle_of(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : 0.5 * (values[half - 1] + values[half]);
}

double median_of(const ComparedSetting& setting, const std::function<double(const ComparedRun&)>& field) {
  std::vector<double> values;
  for (const ComparedRun& run : setting.runs) values.push_back(field(run));
  return middle_of(std::move(values));
}

/// The setting that speedups are relative to: the first one on the fewest ranks. Null where nothing ran.
const ComparedSetting* baseline_of(const std::vector<ComparedSetting>& settings) {
  const ComparedSetting* baseline = nullptr;
  for (const ComparedSetting& setting : settings) {
    if (!setting.runs.empty() && (baseline == nullptr || setting.ranks < baseline->ranks)) baseline = &setting;
  }
  return baseline;
}

std::optional<double> score_of(const ComparedSetting& setting, std::optional<double> ComparedRun::*field) {
  if (!(setting.runs.front().*field)) return std::nullopt;
  return median_of(setting, [field](const ComparedRun& run) { return (run.*field).value_or(0.0); });
}

Json setting_json(const ComparedSetting& setting, const ComparedSetting& baseline) {
  Json line = {{"mode", setting.mode}, {"ranks", setting.ranks}};
  if (setting.runs.empty()) {
    line["failure"] = setting.failure;
    return line;
  }
  const auto training = [](const ComparedRun& run) { return run.training_seconds; };
  const auto rate = [](const ComparedRun& run) { return run.tokens_per_second; };
  const double speedup = median_of(setting, rate) / median_of(baseline, rate);
  line["repeats"] = setting.runs.size();
  line["total_seconds"] = median_of(setting, [](const ComparedRun& run) { return run.total_seconds; });
  line["training_seconds"] = median_of(setting, training);
  line["tokens_per_second"] = median_of(setting, rate);
  line["speedup"] = speedup;
  line["efficiency"] = speedup * static_cast<double>(baseline.ranks) / static_cast<double>(setting.ranks);
  line["memory"] = median_of(setting, [](const ComparedRun& run) { return run.memory; });
  line["sent_per_step"] = median_of(setting, [](const ComparedRun& run) { return run.sent; });
  line["loss"] = median_of(setting, [](const ComparedRun& run) { return run.loss; });
  if (const auto exact = score_of(setting, &ComparedRun::exact)) line["exact"] = *exact;
  if (const auto f1 = score_of(setting, &ComparedRun::f1)) line["f1"] = *f1;
  return line;
}

std::string text_of(const Json& line, const char* key, int decimals, double unit = 1.0) {
  return line.contains(key) ? fmt::format("{:.{}f}", line[key].get<double>() / unit, decimals) : "-";
}

}  // namespace

ComparedRun compared_run(const train::RunRecord& record) {
  require(!record.steps.empty(), "compared_run: no steps");
  ComparedRun run;
  std::vector<double> rates;
  double tokens = 0.0;
  for (const mylos::Json& step : record.steps) {
    const double seconds = train::number_of(step, "seconds"), rate = train::number_of(step, "tokens") / seconds;
    run.memory = std::fmax(run.memory, train::number_of(step, "memory"));
    run.sent += train::number_of(step, "sent") / static_cast<double>(record.steps.size());
    if (std::isfinite(seconds)) run.training_seconds += seconds;
    if (!std::isfinite(rate)) continue;
    rates.push_back(rate);
    tokens += train::number_of(step, "tokens");
  }
  run.mean_tokens_per_second = tokens / run.training_seconds;
  run.tokens_per_second = rates.empty() ? std::nan("") : middle_of(std::move(rates));
  run.loss = train::number_of(record.steps.back(), "loss");
  for (const mylos::Json& evaluation : record.evaluations) {
    if (evaluation.contains("exact")) run.exact = train::number_of(evaluation, "exact");
    if (evaluation.contains("f1")) run.f1 = train::number_of(evaluation, "f1");
  }
  return run;
}

Json comparison_json(const std::vector<ComparedSetting>& settings) {
  Json lines = Json::array();
  const ComparedSetting* baseline = baseline_of(settings);
  for (const ComparedSetting& setting : settings) {
    lines.push_back(setting_json(setting, baseline == nullptr ? setting : *baseline));
  }
  return lines;
}

std::string comparison_table(const std::vector<ComparedSetting>& settings) {
  std::string table = fmt::format("{:<18} {:>5} {:>9} {:>11} {:>9} {:>8} {:>10} {:>11} {:>11} {:>10} {:>7} {:>7}\n",
                                  "mode", "ranks", "total s", "training s", "tokens/s", "speedup", "efficiency",
                                  "MiB a rank", "sent MiB", "loss", "exact", "F1");
  constexpr double mebibyte = 1u << 20;
  for (const Json& line : comparison_json(settings)) {
    table += fmt::format("{:<18} {:>5} ", line["mode"].get<std::string>(), line["ranks"].get<std::size_t>());
    if (line.contains("failure")) {
      table += line["failure"].get<std::string>() + "\n";
      continue;
    }
    table +=
        fmt::format("{:>9} {:>11} {:>9} {:>8} {:>10} {:>11} {:>11} {:>10} {:>7} {:>7}\n",
                    text_of(line, "total_seconds", 1), text_of(line, "training_seconds", 1),
                    text_of(line, "tokens_per_second", 0), text_of(line, "speedup", 2), text_of(line, "efficiency", 2),
                    text_of(line, "memory", 0, mebibyte), text_of(line, "sent_per_step", 2, mebibyte),
                    text_of(line, "loss", 6), text_of(line, "exact", 2), text_of(line, "f1", 2));
  }
  return table;
}

}  // namespace mylos::app
