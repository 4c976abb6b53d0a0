#include "app/report_settings.hpp"

#include "app/config_file.hpp"
#include "app/html.hpp"
#include "train/output_directory.hpp"
#include "train/quantities.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

namespace mylos::app {
namespace {

using nlohmann::json;

/// What an option's or a resolved value is called where both have the name, and its text.
using Settings = std::map<std::string, std::string>;

bool is_description(const std::string& key) {
  return key != program_key && key != resolved_key && key != train::OutputDirectory::state_key && key != "output";
}

Settings options_of(const ReportedRun& run) {
  Settings settings;
  for (const auto& [key, value] : run.record.run.items()) {
    if (is_description(key)) settings[key] = value_text(value);
  }
  return settings;
}

void add_group(const ReportedRun& run, const char* group, const std::string& suffix, Settings& settings) {
  const auto found = run.record.run.find(group);
  if (found == run.record.run.end() || !found->is_object()) return;
  for (const auto& [key, value] : found->items()) settings[key + suffix] = value_text(value);
}

Settings everything_of(const ReportedRun& run) {
  Settings settings = options_of(run);
  add_group(run, resolved_key, " (resolved)", settings);
  add_group(run, program_key, " (program)", settings);
  return settings;
}

/// Rows of a table, those without text left out.
class Facts {
 public:
  void add(const char* name, const std::string& text) {
    if (text.empty()) return;
    rows_ += element("tr", "", text_element("th", "scope=\"row\"", name) + text_element("td", "", text)) + "\n";
  }
  std::string html() const {
    return element("div", "class=\"scroll\" tabindex=\"0\"",
                   element("table", "class=\"facts\"", element("tbody", "", rows_))) +
           "\n";
  }

 private:
  std::string rows_;
};

/// "a, b" of those that are not empty.
std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) {
    if (!part.empty()) text += (text.empty() ? "" : ", ") + part;
  }
  return text;
}

/// "before text after", or nothing where there is no text.
std::string around(const std::string& before, const std::string& text, const std::string& after = "") {
  return text.empty() ? std::string() : before + text + after;
}

std::string counted(const ReportedRun& run, const char* key, const std::string& singular) {
  const auto group = run.record.run.find(resolved_key);
  if (group == run.record.run.end() || !group->is_object()) return {};
  const auto found = group->find(key);
  if (found == group->end() || !found->is_number_unsigned()) return {};
  return train::count_of(found->get<std::size_t>(), singular);
}

std::string mode_of(const ReportedRun& run) {
  const std::string chosen = setting_text(run, resolved_key, "mode");
  return chosen.empty() ? setting_text(run, "mode") : chosen;
}

std::string all_options_html(const ReportedRun& run) {
  HtmlTable table({{"option", HtmlTable::Align::left}, {"value", HtmlTable::Align::left}});
  for (const auto& [name, value] : everything_of(run)) table.add({name, value});
  return element("details", "", element("summary", "", "Every option") + table.html());
}

}  // namespace

std::string description_html(const ReportedRun& run) {
  Facts facts;
  const std::string given = setting_text(run, "model"), resolved = setting_text(run, resolved_key, "model");
  facts.add("model", given.empty() ? resolved : given);
  facts.add("training data", setting_text(run, "train") + around(", the first ", setting_text(run, "train-limit")));
  facts.add("evaluation data", setting_text(run, "dev") + around(", the first ", setting_text(run, "dev-limit")));
  facts.add("rules", around("SQuAD ", setting_text(run, resolved_key, "squad")));
  facts.add("steps",
            joined({counted(run, "steps", "step"), around("", setting_text(run, resolved_key, "epochs"), " epochs"),
                    around("batch ", setting_text(run, "batch")),
                    around("micro-batch ", setting_text(run, resolved_key, "micro-batch"))}));
  facts.add("learning rate",
            joined({setting_text(run, "learning-rate"), setting_text(run, "schedule"),
                    around("warm-up ", setting_text(run, "warmup")), around("clip ", setting_text(run, "clip"))}));
  facts.add("precision", setting_text(run, "precision"));
  facts.add("ranks", joined({counted(run, "ranks", "rank"), counted(run, "nodes", "node"),
                             around("", counted(run, "threads", "thread"), " a rank"), mode_of(run)}));
  facts.add("machine", joined({setting_text(run, resolved_key, "device"), setting_text(run, resolved_key, "execution"),
                               setting_text(run, resolved_key, "hosts")}));
  facts.add("program", joined({around("mylos ", setting_text(run, program_key, "version")),
                               around("commit ", setting_text(run, program_key, "commit")),
                               setting_text(run, program_key, "compiler")}));
  facts.add("seed", setting_text(run, "seed"));
  facts.add("directory", run.record.directory.string());
  return facts.html() + all_options_html(run);
}

std::string differences_html(const std::vector<ReportedRun>& runs) {
  std::vector<HtmlTable::Column> head = {{"", HtmlTable::Align::left}};
  std::vector<Settings> settings;
  Settings all;
  for (const ReportedRun& run : runs) {
    head.push_back({run.name, HtmlTable::Align::left});
    settings.push_back(everything_of(run));
    all.insert(settings.back().begin(), settings.back().end());
  }
  HtmlTable table(std::move(head));
  for (const auto& [name, unused] : all) {
    std::vector<std::string> cells = {name};
    for (const Settings& of_run : settings) {
      const auto found = of_run.find(name);
      cells.push_back(found == of_run.end() ? "-" : found->second);
    }
    if (std::ranges::adjacent_find(cells.begin() + 1, cells.end(), std::ranges::not_equal_to()) != cells.end()) {
      table.add(cells);
    }
  }
  if (table.empty()) return text_element("p", "", "The runs were told the same, and chose the same.");
  return table.html();
}

}  // namespace mylos::app
