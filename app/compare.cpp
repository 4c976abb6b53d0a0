#include "app/options/commands.hpp"
#include "app/options/config_file.hpp"
#include "app/options/consistency.hpp"
#include "app/options/tool_options.hpp"
#include "app/program/build_info.hpp"
#include "app/program/model_argument.hpp"
#include "app/program/replaceable_file.hpp"
#include "app/report/compared_runs.hpp"
#include "app/run_commands.hpp"
#include "core/base/error.hpp"
#include "core/base/files/files.hpp"
#include "core/base/files/json.hpp"
#include "core/base/files/text_file.hpp"
#include "core/base/options/option_values.hpp"
#include "core/base/process/subprocess.hpp"
#include "core/base/stopwatch.hpp"
#include "core/base/text/quantities.hpp"
#include "core/base/text/standard_output.hpp"
#include "train/monitor/output_directory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>
#include <sstream>

/// mylos compare: runs one training job in every parallel mode, on several numbers of ranks.
namespace mylos::app {
namespace {

using OrderedJson = nlohmann::ordered_json;

/// Returns the words of the launcher, with {n} and its like replaced. Ranks for which no number of nodes was asked are
/// on one node, if the launcher wants to know.
std::vector<std::string> launcher_words(const std::string& launcher, const ComparedSetting& setting) {
  const std::size_t nodes = std::max<std::size_t>(setting.nodes, 1);
  const std::array values = {std::pair("{n}", setting.ranks), std::pair("{nodes}", nodes),
                             std::pair("{ranks_per_node}", setting.ranks / nodes)};
  std::vector<std::string> words;
  std::istringstream text(launcher);
  for (std::string word; text >> word;) {
    for (const auto& [name, value] : values) {
      for (std::size_t at = word.find(name); at != std::string::npos; at = word.find(name, at)) {
        word.replace(at, std::string_view(name).size(), std::to_string(value));
      }
    }
    words.push_back(std::move(word));
  }
  return words;
}

std::filesystem::path run_directory(const Arguments& arguments, const ComparedSetting& setting, std::size_t repeat) {
  return arguments.run.engine.output / fmt::format("{}{}-{}-{}", setting.strategy, setting.is_whole ? "-whole" : "",
                                                   setting.ranks_name(), repeat + 1);
}

std::filesystem::path log_file(const std::filesystem::path& run) { return run.string() + ".log"; }

/// Begins the last line of a log, which has the seconds of the whole process.
constexpr std::string_view whole_process = "mylos compare: the whole process took ";

/// Returns the total time of a finished run from its log; NaN if that is missing.
double logged_seconds(const std::filesystem::path& run) {
  std::error_code none;
  const std::string text = std::filesystem::exists(log_file(run), none) ? read_text(log_file(run)) : "";
  const std::size_t found = text.rfind(whole_process);
  if (found == std::string::npos) return unknown_figure;
  const std::size_t begin = found + whole_process.size();
  return parse_real(text.substr(begin, text.find(' ', begin) - begin), {0, unbounded}).value_or(unknown_figure);
}

/// Returns "seed 42, now 7" for each setting of the run in `saved`, a run.json, that is not that of a run of `setting`.
train::CommandDifference difference_from(const OrderedJson& saved, const Arguments& arguments,
                                         const ComparedSetting& setting) {
  static constexpr std::array<std::string_view, 2> own = {"mode", "checkpoint-every"};
  Arguments run = arguments;
  resolve_model_argument(FileReader(), run, [](const std::string&) {});
  resolve_ranks(run, setting.ranks);
  return {.options = differing_settings(saved, *find_command("train"), run, own)};
}

/// Returns whether this job, which a scheduler has started again, has already finished this run in `output`. Removes
/// what it left there of another run or of an interrupted one, because the time of a resumed run is no measurement.
bool is_already_finished(const Arguments& arguments, const ComparedSetting& setting,
                         const std::filesystem::path& output) {
  train::OutputRules rules = train::output_rules(true);
  rules.compare = [&](const OrderedJson& saved) { return difference_from(saved, arguments, setting); };
  try {
    const train::OutputStart start = train::decide_start(output, rules);
    if (start.finished && start.differing.empty()) return true;
    if (start.finished || start.goes_on) {
      train::OutputDirectory(output, {.overwrite = true}).begin(OrderedJson::object());
    }
  } catch (const std::exception&) {  // the run reports it
  }
  return false;
}

/// Stores the figures of the finished run in `output` in `setting`.
void take_figures(const std::filesystem::path& output, double total_seconds, ComparedSetting& setting) {
  const train::RunRecord record = train::read_run(output);
  ensure(!record.steps.empty(), fmt::format("{}: contains no steps", (output / "metrics.jsonl").string()));
  ComparedRun run = compared_run(record);
  run.name = output.filename().string();
  run.total_seconds = total_seconds;
  const bool has_nodes = setting.nodes == 0 || run.nodes == setting.nodes;
  if (!has_nodes || run.ranks != setting.ranks) {
    setting.failure = fmt::format("ran on {} and {}; the job's nodes, or the launcher, do not fit --ranks {}",
                                  count_of(run.nodes, "node"), count_of(run.ranks, "rank"), setting.ranks_name());
    return;
  }
  setting.runs.push_back(std::move(run));
}

/// Runs one run as a separate process, unless this job did so before it was started again. Stores a failure in
/// `setting`, so that the others continue.
void run_once(const Arguments& arguments, const std::filesystem::path& config, std::size_t repeat,
              ComparedSetting& setting) {
  if (!setting.failure.empty()) return;
  const std::filesystem::path output = run_directory(arguments, setting, repeat);
  const std::string name = fmt::format("{} on {} {}, repeat {}", setting.mode_name(), setting.ranks_name(),
                                       setting.ranks == 1 ? "rank" : "ranks", repeat + 1);
  if (is_already_finished(arguments, setting, output)) {
    take_figures(output, logged_seconds(output), setting);
    return log_line(name + ": this job has already finished it; its figures are those of its metrics and its log");
  }
  std::vector<std::string> words = launcher_words(arguments.compare->launcher, setting);
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  for (const std::string& word :
       {program, std::string("train"), std::string("--config"), config.string(), std::string("--mode"),
        setting.strategy, std::string("--output"), output.string(), std::string("--overwrite")}) {
    words.push_back(word);
  }
  const Stopwatch watch;
  const ProcessResult result = run_process(words);
  const double seconds = watch.seconds();
  write_text(log_file(output), fmt::format("{}{}{}{} s\n", result.output, result.errors, whole_process, seconds));
  if (result.exit_code == 0) {
    take_figures(output, seconds, setting);
  } else {
    setting.failure = fmt::format("exit code {}: {}", result.exit_code, failure_reason(result.errors));
  }
  log_line(fmt::format("{}: {}", name, setting.failure.empty() ? fmt::format("{:.1f} s", seconds) : setting.failure));
}

std::vector<ComparedSetting> all_settings(const Arguments& arguments) {
  std::vector<ComparedSetting> settings;
  for (const ComparedRanks& ranks : arguments.compare->ranks) {
    for (const std::string& strategy : arguments.strategies) {
      settings.push_back({strategy, ranks.count, {}, {}, ranks.nodes});
      if (arguments.run.task.adapters.rank == 0) continue;
      settings.push_back(settings.back());
      settings.back().is_whole = true;
    }
  }
  return settings;
}

/// Returns the settings of every run.
OrderedJson common_settings(const Arguments& arguments) {
  OrderedJson settings = settings_for_any_ranks(*find_command("train"), arguments);
  settings[program_key] = program_json();
  // Checkpoints would only disturb the timing, and these runs are never resumed.
  if (!arguments.sources.was_given("checkpoint-every")) settings["checkpoint-every"] = "never";
  return settings;
}

/// Returns whether `common_settings` made the file; a run.json of a run also has a state.
bool is_settings_file(const std::filesystem::path& file) {
  const OrderedJson settings = try_parse_ordered_json(read_text(file));
  return settings.is_object() && settings.contains(program_key) &&
         !settings.contains(train::OutputDirectory::state_key);
}

bool is_comparison_file(const std::filesystem::path& file) {
  const OrderedJson lines = try_parse_ordered_json(read_text(file));
  return lines.is_array() && std::ranges::all_of(lines, [](const OrderedJson& line) {
           return line.is_object() && line.contains("mode") && line.contains("ranks");
         });
}

/// The tables beside comparison.json.
constexpr std::array table_files = {std::pair("comparison.md", TableFormat::markdown),
                                    std::pair("comparison.csv", TableFormat::csv)};

bool is_table_file(const std::filesystem::path& file) {
  const std::string text = read_text(file);
  return text.starts_with("| mode | nodes | ranks | total min |") || text.starts_with("mode,nodes,ranks,total min,");
}

/// Refuses to replace a log that is beside no run of its name.
void check_logs(const Arguments& arguments, const std::vector<ComparedSetting>& settings) {
  for (const ComparedSetting& setting : settings) {
    for (std::size_t repeat = 0; repeat < arguments.repeats; ++repeat) {
      const std::filesystem::path run = run_directory(arguments, setting, repeat);
      const auto is_log = [&](const std::filesystem::path&) { return std::filesystem::is_directory(run); };
      check_replaceable({"--output", log_file(run), "written by mylos compare", is_log}, arguments.overwrite);
    }
  }
}

}  // namespace

int run_compare(const Arguments& arguments) {
  const std::filesystem::path& output = arguments.run.engine.output;
  const std::filesystem::path config = output / "settings.json", table = output / "comparison.json";
  const std::filesystem::path whole_config = output / "settings-whole.json";
  Arguments whole = arguments;
  whole.run.task.adapters = {};
  for (const auto& [name, format] : table_files) {
    check_replaceable({"--output", output / name, "written by mylos compare", is_table_file}, arguments.overwrite);
  }
  for (const std::filesystem::path& file : {config, whole_config}) {
    check_replaceable({"--output", file, "written by mylos compare", is_settings_file}, arguments.overwrite);
  }
  check_replaceable({"--output", table, "written by mylos compare", is_comparison_file}, arguments.overwrite);
  std::vector<ComparedSetting> settings = all_settings(arguments);
  check_logs(arguments, settings);
  std::filesystem::create_directories(output);
  for (const std::string& remark : arguments.remarks) log_line(remark);
  write_text(config, common_settings(arguments).dump(2) + "\n");
  if (arguments.run.task.adapters.rank > 0) write_text(whole_config, common_settings(whole).dump(2) + "\n");
  // Repeats take turns, so that a slow hour of the machine affects all settings alike.
  for (std::size_t repeat = 0; repeat < arguments.repeats; ++repeat) {
    for (ComparedSetting& setting : settings) {
      run_once(setting.is_whole ? whole : arguments, setting.is_whole ? whole_config : config, repeat, setting);
    }
  }
  const std::optional<double> baseline = arguments.compare->baseline_seconds;
  const OrderedJson lines = comparison_json(settings, baseline);
  write_text(table, lines.dump(2) + "\n");
  for (const auto& [name, format] : table_files)
    write_text(output / name, comparison_table(settings, format, baseline));
  print(arguments.json ? lines.dump() + "\n" : comparison_table(settings, TableFormat::text, baseline));
  const bool all_ran =
      std::ranges::all_of(settings, [](const ComparedSetting& setting) { return setting.failure.empty(); });
  return all_ran ? 0 : 1;
}

}  // namespace mylos::app
