#include "app/compare.hpp"

#include "app/build_info.hpp"
#include "app/commands.hpp"
#include "app/config_file.hpp"
#include "app/replaceable_file.hpp"
#include "app/standard_output.hpp"
#include "core/error.hpp"
#include "data/files.hpp"
#include "data/json.hpp"
#include "data/subprocess.hpp"
#include "data/text_file.hpp"
#include "train/output_directory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <sstream>

/// mylos compare: one training job in every parallel mode, on several numbers of ranks.
namespace mylos::app {
namespace {

using Clock = std::chrono::steady_clock;
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

/// What speedups count from: the fewest ranks' first setting.
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

/// The launcher's words with the number of ranks in the place of {n}.
std::vector<std::string> launcher_words(const std::string& launcher, std::size_t ranks) {
  std::vector<std::string> words;
  std::istringstream text(launcher);
  for (std::string word; text >> word;) {
    if (const std::size_t at = word.find("{n}"); at != std::string::npos) word.replace(at, 3, std::to_string(ranks));
    words.push_back(std::move(word));
  }
  return words;
}

std::filesystem::path run_directory(const Arguments& arguments, const ComparedSetting& setting, std::size_t repeat) {
  return arguments.run.engine.output / fmt::format("{}-{}-{}", setting.mode, setting.ranks, repeat + 1);
}

/// One run as a process of its own; a failure is kept, and the others go on.
void run_once(const Arguments& arguments, const std::filesystem::path& config, std::size_t repeat,
              ComparedSetting& setting) {
  if (!setting.failure.empty()) return;
  const std::filesystem::path output = run_directory(arguments, setting, repeat);
  std::vector<std::string> words = launcher_words(arguments.launcher, setting.ranks);
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  for (const std::string& word :
       {program, std::string("train"), std::string("--config"), config.string(), std::string("--mode"), setting.mode,
        std::string("--output"), output.string(), std::string("--overwrite")}) {
    words.push_back(word);
  }
  const Clock::time_point begin = Clock::now();
  const data::ProcessResult result = data::run_process(words);
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  if (result.exit_code == 0) {
    const train::RunRecord record = train::read_run(output);
    ensure(!record.steps.empty(), fmt::format("{}: no steps in it", (output / "metrics.jsonl").string()));
    setting.runs.push_back(compared_run(record));
    setting.runs.back().total_seconds = seconds;
  } else {
    setting.failure = fmt::format("exit code {}: {}", result.exit_code, data::last_line(result.errors));
  }
  log_line(fmt::format("{} on {} ranks, repeat {}: {}", setting.mode, setting.ranks, repeat + 1,
                       setting.failure.empty() ? fmt::format("{:.1f} s", seconds) : setting.failure));
}

std::vector<ComparedSetting> all_settings(const Arguments& arguments) {
  std::vector<ComparedSetting> settings;
  for (const std::size_t ranks : arguments.ranks) {
    for (const std::string& mode : arguments.modes) settings.push_back({mode, ranks, {}, {}});
  }
  return settings;
}

/// What every run is told. A batch per rank is not settled here: the runs differ in their ranks.
Json common_settings(const Arguments& arguments) {
  Json settings = settings_json(*find_command("train"), arguments);
  settings[program_key] = program_json();
  // Times are compared, and nothing goes on with these runs.
  const bool is_told = arguments.given.contains("checkpoint-every") || arguments.given.contains("save-strategy");
  if (!is_told) settings["checkpoint-every"] = "never";
  if (!arguments.batch_is_per_rank) return settings;
  const train::RunConfig& run = arguments.run;
  settings["batch-per-rank"] = run.squad.batch / std::max<std::size_t>(run.engine.accumulation, 1);
  settings.erase("batch");
  return settings;
}

/// Whether `common_settings` made a file; a copy of a run.json has a state.
bool is_settings_file(const std::filesystem::path& file) {
  const Json settings = data::try_parse_ordered_json(data::read_text(file));
  return settings.is_object() && settings.contains(program_key) &&
         !settings.contains(train::OutputDirectory::state_key);
}

bool is_comparison_file(const std::filesystem::path& file) {
  const Json lines = data::try_parse_ordered_json(data::read_text(file));
  return lines.is_array() && std::ranges::all_of(lines, [](const Json& line) {
           return line.is_object() && line.contains("mode") && line.contains("ranks");
         });
}

}  // namespace

ComparedRun compared_run(const train::RunRecord& record) {
  require(!record.steps.empty(), "compared_run: no steps");
  ComparedRun run;
  std::vector<double> rates;
  double tokens = 0.0;
  for (const data::Json& step : record.steps) {
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
  for (const data::Json& evaluation : record.evaluations) {
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

int run_compare(const Arguments& arguments) {
  const std::filesystem::path& output = arguments.run.engine.output;
  const std::filesystem::path config = output / "settings.json", table = output / "comparison.json";
  check_replaceable({"--output", config, "written by mylos compare", is_settings_file}, arguments.overwrite);
  check_replaceable({"--output", table, "written by mylos compare", is_comparison_file}, arguments.overwrite);
  std::filesystem::create_directories(output);
  for (const std::string& remark : arguments.remarks) log_line(remark);
  data::write_text(config, common_settings(arguments).dump(2) + "\n");
  std::vector<ComparedSetting> settings = all_settings(arguments);
  // In turns, so that a slow hour of the machine falls on all alike.
  for (std::size_t repeat = 0; repeat < arguments.repeats; ++repeat) {
    for (ComparedSetting& setting : settings) run_once(arguments, config, repeat, setting);
  }
  const Json lines = comparison_json(settings);
  data::write_text(table, lines.dump(2) + "\n");
  print(arguments.json ? lines.dump() + "\n" : comparison_table(settings));
  const bool all_ran =
      std::ranges::all_of(settings, [](const ComparedSetting& setting) { return setting.failure.empty(); });
  return all_ran ? 0 : 1;
}

}  // namespace mylos::app
