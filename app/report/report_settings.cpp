#include "app/report/report.hpp"

#include "app/options/config_file.hpp"
#include "app/report/html.hpp"
#include "core/base/text/quantities.hpp"
#include "train/monitor/output_directory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace mylos::app {
namespace {

using nlohmann::json;

/// Full text of each value by name. Resolved values have a suffix that distinguishes them from options of the same
/// name.
using SettingValues = std::map<std::string, std::string>;

bool is_description(const std::string& key) {
  return key != program_key && key != resolved_key && key != train::OutputDirectory::state_key && key != "output";
}

/// Adds a value as text; each member of an object gets its own row.
void add_value(const std::string& name, const std::string& suffix, const json& value, SettingValues& settings) {
  if (value.is_object()) {
    for (const auto& [key, member] : value.items())
      add_value(fmt::format("{}.{}", name, key), suffix, member, settings);
  } else if (name == "memory" && value.is_number_unsigned()) {
    settings[name + suffix] = bytes_text(value.get<std::size_t>());
  } else if (name == "epochs" && value.is_number()) {
    settings[name + suffix] = number_text(value.get<double>());
  } else {
    settings[name + suffix] = value_text(value);
  }
}

void add_group(const ReportedRun& run, const std::string& group, SettingValues& settings) {
  const json members = setting_of(run.record, ("/" + group).c_str());
  if (!members.is_object()) return;
  for (const auto& [key, value] : members.items()) {
    // The list of metrics is not a setting, and neither is what was measured.
    if (key != changed_key && key != train::metrics_key && key != bandwidth_key)
      add_value(key, fmt::format(" ({})", group), value, settings);
  }
}

SettingValues everything_of(const ReportedRun& run) {
  SettingValues settings;
  for (const auto& [key, value] : run.record.run.items()) {
    if (is_description(key)) add_value(key, "", value, settings);
  }
  for (const char* group : {resolved_key, program_key}) add_group(run, group, settings);
  return settings;
}

constexpr std::size_t longest_shown = 60;

/// Returns the part of a long text that is shown, beginning shortly before `begin`, where it differs from another text.
std::string shown(const std::string& text, std::size_t begin = 0) {
  constexpr std::size_t before = 15;
  if (text.size() <= longest_shown) return text;
  const auto is_inside = [&](std::size_t i) { return (static_cast<unsigned char>(text[i]) & 0xC0u) == 0x80u; };
  std::size_t from = begin + longest_shown / 2 > longest_shown ? begin - std::min(begin, before) : 0;
  while (from > 0 && is_inside(from)) --from;
  std::size_t to = std::min(text.size(), from + longest_shown);
  while (to < text.size() && is_inside(to)) --to;
  return (from > 0 ? "..." : "") + text.substr(from, to - from) + (to < text.size() ? "..." : "");
}

/// Returns the first position at which one of the texts differs from the first one.
std::size_t difference_of(const std::vector<std::string>& texts) {
  std::size_t first = std::string::npos;
  for (const std::string& text : texts) {
    const auto at = std::ranges::mismatch(text, texts.front()).in1 - text.begin();
    if (text != texts.front()) first = std::min(first, static_cast<std::size_t>(at));
  }
  return first;
}

/// Joins the non-empty parts: "a, b".
std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) {
    if (!part.empty()) text += (text.empty() ? "" : ", ") + part;
  }
  return text;
}

/// Returns "before text after", or an empty string if the text is empty.
std::string around(const std::string& before, const std::string& text, const std::string& after = "") {
  return text.empty() ? std::string() : before + text + after;
}

std::string counted(const ReportedRun& run, const char* pointer, const std::string& singular) {
  const std::optional<std::size_t> count = setting_count(run.record, pointer);
  return count ? count_of(*count, singular) : std::string();
}

/// Returns the text of the first of two values that is there.
std::string either(const ReportedRun& run, const char* pointer, const char* other) {
  const std::string text = setting_text(run, pointer);
  return text.empty() ? setting_text(run, other) : text;
}

std::string all_options_html(const ReportedRun& run) {
  HtmlTable table({"option", "value"}, "l");
  for (const auto& [name, value] : everything_of(run)) table.add({name, shown(value)});
  return element("details", "", element("summary", "", "Every option") + table.html());
}

}  // namespace

std::string description_html(const ReportedRun& run) {
  const auto text = [&](const char* pointer) { return setting_text(run, pointer); };
  std::vector<std::pair<std::string, std::string>> facts = {
      {"model", either(run, "/model", "/resolved/model")},
      {"training data", text("/train") + around(", the first ", text("/train-limit"))},
      {"evaluation data", text("/dev") + around(", the first ", text("/dev-limit"))}};
  if (const tasks::TaskKind* task = task_kind_of(run)) {
    for (const auto& [name, fact] : task->facts(run.record.run)) facts.emplace_back(name, fact);
  }
  const json epochs = setting_of(run.record, "/resolved/epochs");
  const std::vector<std::pair<std::string, std::string>> more = {
      {"steps", joined({counted(run, "/resolved/steps", "step"),
                        around("", epochs.is_number() ? number_text(epochs.get<double>()) : "", " epochs"),
                        around("batch ", text("/batch")), around("micro-batch ", text("/resolved/micro-batch"))})},
      {"learning rate", joined({text("/learning-rate"), text("/schedule"), around("warm-up ", text("/warmup")),
                                around("clip ", text("/clip"))})},
      {"precision", text("/precision")},
      {"ranks", joined({counted(run, "/resolved/ranks", "rank"), counted(run, "/resolved/nodes", "node"),
                        around("", counted(run, "/resolved/threads", "thread"), " a rank"),
                        either(run, "/resolved/mode", "/mode")})},
      {"machine", joined({text("/resolved/device"), text("/resolved/execution"), text("/resolved/hosts")})},
      {"program", joined({around("mylos ", text("/program/version")), around("commit ", text("/program/commit")),
                          text("/program/compiler")})},
      {"seed", text("/seed")},
      {"directory", run.record.directory.string()}};
  facts.insert(facts.end(), more.begin(), more.end());
  std::string rows;
  for (const auto& [name, fact] : facts) {
    if (fact.empty()) continue;
    rows += element("tr", "", text_element("th", "scope=\"row\"", name) + text_element("td", "", fact)) + "\n";
  }
  return element("div", "class=\"scroll\" tabindex=\"0\"",
                 element("table", "class=\"facts\"", element("tbody", "", rows))) +
         "\n" + all_options_html(run);
}

std::string differences_html(const std::vector<ReportedRun>& runs) {
  std::vector<std::string> head = {""};
  std::vector<SettingValues> settings;
  SettingValues all;
  for (const ReportedRun& run : runs) {
    head.push_back(run.name);
    settings.push_back(everything_of(run));
    all.insert(settings.back().begin(), settings.back().end());
  }
  HtmlTable table(std::move(head), "l");
  for (const auto& [name, unused] : all) {
    std::vector<std::string> texts;
    for (const SettingValues& of_run : settings) {
      const auto found = of_run.find(name);
      texts.push_back(found == of_run.end() ? "-" : found->second);
    }
    const std::size_t difference = difference_of(texts);
    if (difference == std::string::npos) continue;
    std::vector<std::string> cells = {name};
    for (const std::string& text : texts) cells.push_back(shown(text, difference));
    table.add(cells);
  }
  const bool is_known = std::ranges::all_of(runs, [](const ReportedRun& run) { return run.record.problem.empty(); });
  if (table.empty() && !is_known) return {};
  if (table.empty()) return text_element("p", "", "The runs had the same options and resolved the same defaults.");
  return table.html();
}

}  // namespace mylos::app
