#include "app/sweep/sweep_points.hpp"

#include "app/options/config_file.hpp"
#include "app/options/options.hpp"
#include "app/options/parse.hpp"
#include "app/program/build_info.hpp"
#include "app/program/model_argument.hpp"
#include "core/base/error.hpp"
#include "core/base/files/files.hpp"
#include "core/base/files/json.hpp"
#include "core/base/files/text_file.hpp"
#include "core/base/text/printable.hpp"
#include "core/base/usage_error.hpp"
#include "data/images/synthetic_images.hpp"
#include "train/monitor/output_start.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <set>
#include <string_view>
#include <utility>

namespace mylos::app {
namespace {

namespace fs = std::filesystem;
using OrderedJson = nlohmann::ordered_json;

constexpr std::string_view settings_key = "settings", sweep_key = "sweep", points_key = "points";
/// Options of one start of a run, which the sweep and its job script give. run.json does not record most of them.
constexpr std::array<std::string_view, 12> options_of_start = {"output",  "config",      "resume",   "overwrite",
                                                               "extend",  "dry-run",     "profile",  "trace",
                                                               "verbose", "stop-before", "walltime", "help"};

[[noreturn]] void refuse_settings(const fs::path& file, std::string_view why) {
  throw UsageError(fmt::format("{}: {}", file.string(), why));
}

bool is_value(const OrderedJson& value) { return !value.is_structured() && !value.is_null(); }

/// Returns the name in the option table, if `key` is an option's.
std::string option_name(const std::string& key, const tasks::TaskKind& task) {
  const Option* option = find_option(key, task);
  return option == nullptr ? normalized_name(key) : option->name;
}

/// Returns the combinations of {"seed": [1, 2], ...}; the last option varies fastest.
std::vector<OrderedJson> combinations(const OrderedJson& lists, const fs::path& file) {
  std::vector<OrderedJson> points = {OrderedJson::object()};
  for (const auto& [key, values] : lists.items()) {
    if (!values.is_array() || values.empty() || !std::ranges::all_of(values, is_value)) {
      refuse_settings(file, fmt::format("{}.{}: expected a list of numbers, strings, true or false, with at least one",
                                        sweep_key, printable(key)));
    }
    std::vector<OrderedJson> longer;
    for (const OrderedJson& point : points) {
      for (const OrderedJson& value : values) {
        if (longer.size() > most_points) break;  // refused below
        longer.push_back(point);
        longer.back()[key] = value;
      }
    }
    points = std::move(longer);
  }
  return points;
}

/// Returns what varies, a JSON object for each point.
std::vector<OrderedJson> varied_options(const OrderedJson& sweep, const fs::path& file) {
  const bool is_list = sweep.is_array() && std::ranges::all_of(sweep, [](const OrderedJson& each) {
                         return each.is_object() && !each.empty() && std::ranges::all_of(each, is_value);
                       });
  if (!is_list && !sweep.is_object()) {
    refuse_settings(file,
                    fmt::format("{}: expected {{option: [value, value]}}, or a list of {{option: value}}", sweep_key));
  }
  std::vector<OrderedJson> points =
      is_list ? std::vector<OrderedJson>(sweep.begin(), sweep.end()) : combinations(sweep, file);
  if (points.size() > most_points) {
    refuse_settings(file,
                    fmt::format("{}: more than {} points; divide it into several sweeps", sweep_key, most_points));
  }
  if (points.size() < 2) {
    refuse_settings(file, fmt::format("{}: expected at least two points; a single run is `mylos train`", sweep_key));
  }
  return points;
}

/// Checks that no option of a point is the sweep's own, and that none has two values.
void check_keys(const OrderedJson& fixed, const OrderedJson& varied, const tasks::TaskKind& task) {
  std::set<std::string> names;
  for (const OrderedJson* part : {&fixed, &varied}) {
    for (const auto& [key, value] : part->items()) {
      const std::string name = option_name(key, task);
      if (std::ranges::find(options_of_start, name) != options_of_start.end()) {
        throw UsageError(fmt::format("{}: the sweep and its job script set it; leave it out", printable(key)));
      }
      if (!names.insert(name).second) {
        throw UsageError(fmt::format("{}: another key sets this option, too; leave out one of them", printable(key)));
      }
    }
  }
}

std::vector<std::string> words_of(const OrderedJson& options) {
  std::vector<std::string> words;
  for (const auto& [key, value] : options.items()) {
    if (!value.is_null()) words.push_back(fmt::format("--{}={}", key, plain_text(value)));
  }
  return words;
}

void check_data(const Arguments& arguments) {
  for (const auto& [name, data] : {std::pair("train", arguments.run.task.train), {"dev", arguments.run.task.dev}}) {
    const bool is_there = data.empty() || data::is_synthetic(data.string()) || is_present(data);
    if (!is_there) throw UsageError(fmt::format("--{} {}: there is no such file or directory", name, data.string()));
  }
}

/// Returns a directory's name: the number, and the options as far as a name can have them.
std::string name_of(std::size_t number, const OrderedJson& varied) {
  constexpr std::size_t longest = 120;
  std::string name = fmt::format("{:03}", number);
  for (const auto& [key, value] : varied.items()) {
    name += fmt::format("{}{}={}", name.size() == 3 ? "-" : ",", key, plain_text(value));
  }
  const auto is_odd = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) == 0 &&
           std::string_view(".,=+-_").find(c) == std::string_view::npos;
  };
  std::ranges::replace_if(name, is_odd, '_');
  return name.substr(0, longest);
}

/// Checks the options of a point and returns it, with the settings of its run but their output.
SweepPoint make_point(const OrderedJson& fixed, const OrderedJson& varied, std::vector<std::string>& remarks) {
  check_keys(fixed, varied, tasks::default_task_kind());  // before --config or --help among them has an effect
  std::vector<std::string> words = words_of(fixed);
  const std::vector<std::string> more = words_of(varied);
  words.insert(words.end(), more.begin(), more.end());
  words.emplace_back("--output=point");
  const Command& train = *find_command("train");
  Arguments arguments = parse_arguments(FileReader(), train, words);
  check_keys(fixed, varied, *arguments.task);
  for (std::string& remark : arguments.remarks) {
    if (std::ranges::find(remarks, remark) == remarks.end()) remarks.push_back(std::move(remark));
  }
  SweepPoint point{.varied = OrderedJson::object(), .settings = settings_for_any_ranks(train, arguments)};
  for (const auto& [key, value] : varied.items()) point.varied[option_name(key, *arguments.task)] = value;
  check_data(arguments);
  resolve_model_argument(FileReader(), arguments, [](const std::string&) {});
  return point;
}

/// Returns "epochs 2, now 3" for each setting of a point that had another value in `saved`.
std::vector<std::string> differences(const OrderedJson& saved, const OrderedJson& settings) {
  std::vector<std::string> found;
  for (const auto& [name, value] : settings.items()) {
    if (name == "output" || name == program_key || !saved.contains(name) || saved[name] == value) continue;
    found.push_back(fmt::format("{} {}, now {}", name, plain_text(saved[name]), plain_text(value)));
  }
  return found;
}

}  // namespace

fs::path sweep_file(const fs::path& sweep) { return sweep / "sweep.json"; }
fs::path point_run(const fs::path& sweep, const std::string& name) { return sweep / "points" / name; }
fs::path point_settings(const fs::path& sweep, const std::string& name) {
  return point_run(sweep, name).string() + ".json";
}

Sweep read_sweep_settings(const fs::path& file, const fs::path& sweep) {
  const OrderedJson parsed = try_parse_ordered_json(read_text_file(file));
  if (parsed.is_discarded()) refuse_settings(file, "not JSON, or nested too deeply");
  if (!parsed.is_object() || !parsed.contains(sweep_key)) {
    refuse_settings(file, R"(expected {"settings": {option: value}, "sweep": {option: [value, value]}})");
  }
  OrderedJson fixed = OrderedJson::object();
  for (const auto& [key, value] : parsed.items()) {
    if (key == settings_key) fixed = value;
    if (key != settings_key && key != sweep_key) {
      refuse_settings(file, fmt::format("unknown key \"{}\"; options of all points belong into \"{}\"", printable(key),
                                        settings_key));
    }
  }
  const auto is_setting = [](const OrderedJson& value) { return !value.is_structured(); };
  if (!fixed.is_object() || !std::ranges::all_of(fixed, is_setting)) {
    refuse_settings(file, fmt::format("{}: expected {{option: value}}, without lists; what varies belongs into \"{}\"",
                                      settings_key, sweep_key));
  }
  Sweep result;
  std::map<std::string, std::size_t> numbers;  // of points, by their settings
  for (const OrderedJson& varied : varied_options(parsed[sweep_key], file)) {
    const std::size_t number = result.points.size();
    try {
      result.points.push_back(make_point(fixed, varied, result.remarks));
    } catch (const std::runtime_error& error) {
      refuse_settings(file, fmt::format("point {} ({}): {}", number, fmt::join(words_of(varied), " "), error.what()));
    }
    SweepPoint& point = result.points.back();
    const auto [equal, is_new] = numbers.emplace(point.settings.dump(), number);
    point.name = name_of(number, point.varied);
    if (!is_new) {
      refuse_settings(
          file, fmt::format("points {} and {} are equal, so that both would train in {}; leave out one", equal->second,
                            number, point_run(sweep, result.points[equal->second].name).string()));
    }
    point.settings[program_key] = program_json();
  }
  return result;
}

void join_existing_sweep(const fs::path& sweep, std::vector<SweepPoint>& points) {
  std::error_code none;
  if (!fs::exists(sweep, none)) return;
  ensure(fs::is_directory(sweep, none), fmt::format("--output {}: is not a directory; choose another", sweep.string()));
  const std::vector<std::string> names = train::names_in(sweep);
  if (names.empty()) return;
  ensure(fs::exists(sweep_file(sweep), none),
         fmt::format("--output {}: contains {}, which no sweep wrote; choose an empty or a new directory",
                     sweep.string(), printable(names.front())));
  std::vector<SweepPoint> ordered;
  for (const SweepPoint& old : read_sweep(sweep)) {
    const auto found = std::ranges::find(points, old.varied, &SweepPoint::varied);
    ensure(found != points.end(), fmt::format("--output {}: holds a sweep with another point, {}; keep its points when "
                                              "you add some, or choose another directory",
                                              sweep.string(), old.name));
    const fs::path settings = point_settings(sweep, old.name);
    const OrderedJson saved = fs::exists(settings, none) ? try_parse_ordered_json(read_text(settings)) : OrderedJson();
    const std::vector<std::string> differing = differences(saved, found->settings);
    ensure(differing.empty(),
           fmt::format("--output {}: holds a sweep with other settings: {}; choose another directory", sweep.string(),
                       fmt::join(differing, "; ")));
    found->name = old.name;
    ordered.push_back(std::move(*found));
    points.erase(found);
  }
  for (SweepPoint& point : points) {
    point.name = name_of(ordered.size(), point.varied);
    ordered.push_back(std::move(point));
  }
  points = std::move(ordered);
}

std::vector<SweepPoint> read_sweep(const fs::path& sweep) {
  const fs::path file = sweep_file(sweep);
  std::error_code none;
  ensure(fs::is_regular_file(file, none),
         fmt::format("{}: contains no sweep.json; give the --output of `mylos sweep SETTINGS.json`", sweep.string()));
  const OrderedJson parsed = try_parse_ordered_json(read_text(file));
  const auto is_point = [](const OrderedJson& each) {
    if (!each.is_object()) return false;
    const auto name = each.find("name"), varied = each.find("varied");
    return name != each.end() && varied != each.end() && name->is_string() && varied->is_object() &&
           name->get<std::string>().find('/') == std::string::npos;
  };
  const OrderedJson listed = parsed.is_object() ? parsed.value(points_key, OrderedJson()) : OrderedJson();
  ensure(listed.is_array() && !listed.empty() && std::ranges::all_of(listed, is_point),
         fmt::format("{}: not written by mylos sweep", file.string()));
  std::vector<SweepPoint> points;
  for (const OrderedJson& each : listed) points.push_back({each["name"], each["varied"], {}});
  return points;
}

void write_sweep(const fs::path& sweep, const std::vector<SweepPoint>& points) {
  fs::create_directories(sweep / "points");
  fs::create_directories(sweep / "logs");
  OrderedJson listed = OrderedJson::array();
  for (const SweepPoint& point : points) listed.push_back({{"name", point.name}, {"varied", point.varied}});
  write_text(sweep_file(sweep), OrderedJson({{program_key, program_json()}, {points_key, listed}}).dump(2) + "\n");
  for (const SweepPoint& point : points) {
    OrderedJson settings = point.settings;
    settings["output"] = point_run(sweep, point.name).string();
    write_text(point_settings(sweep, point.name), settings.dump(2) + "\n");
  }
}

}  // namespace mylos::app
