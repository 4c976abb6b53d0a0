#include "app/options/commands.hpp"
#include "app/options/config_file.hpp"
#include "app/options/options.hpp"
#include "app/options/parse.hpp"
#include "app/options/peer_options.hpp"
#include "app/options/plan_options.hpp"
#include "app/options/train_options.hpp"
#include "core/base/crc32c.hpp"
#include "core/base/files/files.hpp"
#include "core/base/usage_error.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/temporary.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

/// The meaning of command lines, compared with the recording in tests/golden/command_lines.txt. Each of its lines holds
/// a command, a task, an option, and the CRC of what the option does with some values. With MYLOS_COMMAND_LINES=FILE
/// the test also writes each command line with its meaning, to be compared with the file of another version.
namespace mylos::app {
namespace {

using Words = std::vector<std::string>;

/// Values that are tried with every option; its choices are added. Some are wrong for each of them.
const Words& values() {
  static const Words all = {"", "1", "2", "0.5", "-1", "true", "no", "none", "1,2", "10m", "/a/b", "x y"};
  return all;
}

/// Options whose texts or defaults depend on the build or the machine.
bool depends_on_build(std::string_view name) {
  static const std::set<std::string_view> all = {"gemm",      "providers", "tf32",   "communicator",
                                                 "attention", "use-cpu",   "no-cuda"};
  return all.contains(name);
}

/// Returns a valid command line, to which options are added.
Words least_words(const Command& command, const tasks::TaskKind& task) {
  Words words;
  const auto add = [&](const char* name, const std::string& value) {
    const Option* option = find_option(name, task);
    if (option == nullptr || !has_option(command, *option)) return;
    words.push_back(std::string("--") + name);
    words.push_back(value);
  };
  add("task", std::string(task.name()));
  add("model", "M");
  add("train", "/data/train");
  add("output", "/out");
  add("data", "/data/file");
  add("context", "/data/text");
  if (command.name == "tokenize") words.clear();
  for (std::size_t i = 0; i < command.least_positional; ++i) words.emplace_back("word");
  return words;
}

/// Returns the settings of a command without options.
const nlohmann::ordered_json& default_settings(const Command& command, const tasks::TaskKind& task) {
  static std::map<std::pair<std::string, std::string>, nlohmann::ordered_json> all;
  const auto [found, is_new] = all.try_emplace({std::string(command.name), std::string(task.name())});
  if (is_new) found->second = settings_json(command, default_arguments(command, task));
  return found->second;
}

/// Returns what a command line means: an error, or the settings that are not the defaults, and the remarks.
std::string meaning(const Command& command, const Words& words) {
  try {
    const Arguments arguments = parse_arguments(FileReader(), command, words);
    const auto settings = settings_json(command, arguments);
    const auto& usual = default_settings(command, *arguments.task);
    std::string text(arguments.task->name());
    for (const auto& [name, value] : settings.items()) {
      if (usual.value(name, nlohmann::ordered_json()) != value && !depends_on_build(name))
        text += fmt::format(" {}={}", name, value.dump());
    }
    text += fmt::format(" resume={} flags={}{}{}{}{}{} per-rank={}", arguments.train->resume,
                        arguments.overwrite ? 'o' : '-', arguments.train->extend ? 'e' : '-',
                        arguments.train->dry_run ? 'd' : '-', arguments.train->verbose ? 'v' : '-',
                        arguments.plan->every_strategy ? 'm' : '-', arguments.run.task.do_eval ? 'q' : '-',
                        arguments.batch_is_per_rank);
    text += " modes=";
    for (const std::string& strategy : arguments.strategies) text += strategy + ",";
    text += " positional=";
    for (const std::string& word : arguments.positional) text += word + ",";
    for (const std::string& remark : arguments.remarks) text += " | " + remark;
    return text;
  } catch (const std::exception& error) {
    return std::string("error: ") + error.what();
  }
}

/// Returns the names of all options of `task` and of peers, with aliases, in alphabetical order.
Words names_of(const tasks::TaskKind& task) {
  Words names;
  for (const Option& option : option_table(task)) {
    if (depends_on_build(option.name)) continue;
    names.push_back(option.name);
    names.insert(names.end(), option.aliases.begin(), option.aliases.end());
  }
  for (const PeerOption& peer : peer_options(task)) {
    if (!depends_on_build(peer.name)) names.emplace_back(peer.name);
  }
  const std::set<std::string> each_once(names.begin(), names.end());
  return {each_once.begin(), each_once.end()};
}

Words values_of(const std::string& name, const tasks::TaskKind& task) {
  Words all = values();
  const Option* option = find_option(name, task);
  if (option != nullptr) all.insert(all.end(), option->choices.begin(), option->choices.end());
  return all;
}

/// Returns the words of one option, of its denial, and of it with each value; the first are without a value.
std::vector<Words> ways_to_type(const std::string& name, const tasks::TaskKind& task) {
  std::vector<Words> ways = {{"--" + name}, {"--no-" + name}};
  for (const std::string& value : values_of(name, task)) ways.push_back({"--" + name + "=" + value});
  return ways;
}

std::string joined(const Words& words) {
  std::string text;
  for (const std::string& word : words) text += " " + word;
  return text;
}

/// Lines of words and their meaning, and their CRC.
class Meanings {
 public:
  explicit Meanings(std::ofstream& file) : file_(file) {}
  void add(const Command& command, const Words& words) {
    const std::string line = fmt::format("{}{} -> {}\n", command.name, joined(words), meaning(command, words));
    text_ += line;
    if (file_.is_open()) file_ << line;
  }
  std::string crc() const { return fmt::format("{:08x}", crc32c(std::as_bytes(std::span(text_)))); }

 private:
  std::ofstream& file_;
  std::string text_;
};

std::ofstream shown_file() {
  const char* name = std::getenv("MYLOS_COMMAND_LINES");
  return name == nullptr ? std::ofstream() : std::ofstream(name);
}

/// Returns whether `command` can be given for runs of `task`.
bool is_for(const Command& command, const tasks::TaskKind& task) {
  if (!command.task.empty()) return command.task == task.name();
  return &task == &tasks::default_task_kind() || has_option(command, *find_option("task"));
}

TEST(CommandLines, MeanWhatTheyMeant) {
  std::ofstream shown = shown_file();
  const std::filesystem::path here = std::filesystem::current_path();
  std::filesystem::current_path("/");  // relative paths become absolute
  std::string computed;
  for (const Command& command : commands()) {
    for (const tasks::TaskKind* task : tasks::task_kinds()) {
      if (!is_for(command, *task)) continue;
      Meanings others(shown);
      for (const std::string& name : names_of(*task)) {
        const Option* option = find_option(name, *task);
        const bool is_taken = option == nullptr ? command.name == "train" : has_option(command, *option);
        Words words = least_words(command, *task);
        if (!is_taken) {
          words.push_back("--" + name);
          others.add(command, words);
          continue;
        }
        Meanings meanings(shown);
        const std::size_t least = words.size();
        for (const Words& typed : ways_to_type(name, *task)) {
          words.resize(least);
          words.insert(words.end(), typed.begin(), typed.end());
          meanings.add(command, words);
        }
        computed += fmt::format("{} {} {} {}\n", command.name, task->name(), name, meanings.crc());
      }
      computed += fmt::format("{} {} others {}\n", command.name, task->name(), others.crc());
    }
  }
  std::filesystem::current_path(here);
  if (shown.is_open()) shown << computed;
  EXPECT_EQ(computed, read_text(tests::golden_data() / "command_lines.txt"))
      << "with MYLOS_COMMAND_LINES=FILE, this test writes the command lines and what they mean";
}

}  // namespace
}  // namespace mylos::app
