#include "app/options/parse.hpp"

#include "app/options/config_file.hpp"
#include "app/options/consistency.hpp"
#include "app/options/peer_options.hpp"
#include "app/options/task_choice.hpp"
#include "core/base/files.hpp"
#include "core/base/option_values.hpp"
#include "core/base/printable.hpp"
#include "core/base/unicode.hpp"
#include "core/base/usage_error.hpp"
#include "data/huggingface/model_names.hpp"

#include <fmt/format.h>

#include <cctype>
#include <optional>
#include <utility>
#include <vector>

namespace mylos::app {
namespace {

/// An option as it was typed, still text.
struct Occurrence {
  const Option* option;
  std::string typed;  ///< "--max_steps"
  std::string value;
  std::vector<std::string> words = {};  ///< all that belong to it
};

/// The command line sorted, but not yet read.
struct Sorted {
  std::vector<std::string> remarks;  ///< on options of peers that have no effect here
  std::vector<Occurrence> options;
  std::vector<std::string> positional;
  bool help = false;
};

std::string commands_with(const Option& option) {
  std::string names;
  for (const Command& command : commands()) {
    if (option.belongs_to(command.bit)) names += fmt::format("{}{}", names.empty() ? "" : ", ", command.name);
  }
  return names;
}

std::vector<std::string> option_names(const Command& command, const tasks::TaskKind& task) {
  std::vector<std::string> names{"help"};
  for (const Option& option : option_table(task)) {
    if (!option.belongs_to(command.bit)) continue;
    names.push_back(option.name);
    names.insert(names.end(), option.aliases.begin(), option.aliases.end());
  }
  return names;
}

bool takes_peer_options(const Command& command) { return (command.bit & train_command) != 0; }

/// The option of `command` that was typed as `name`, for runs of `task`. Errors: UsageError.
const Option& get_option(const Command& command, const tasks::TaskKind& task, const std::string& name) {
  const Option* option = find_option(name, task);
  if (option != nullptr && option->belongs_to(command.bit)) return *option;
  if (option != nullptr) {
    throw UsageError(
        fmt::format("{} does not have --{}, which belongs to {}", command.name, name, commands_with(*option)));
  }
  if (const tasks::TaskKind* other = other_task_with(name, task)) {
    throw UsageError(fmt::format("{}: --{} belongs to --task {}, and this is a run of {}", command.name, name,
                                 other->name(), task.title()));
  }
  const std::string normal = normalized_name(name);
  const std::vector<std::string> names = option_names(command, task);
  const std::string meant =
      takes_peer_options(command) ? suggestion_with_peers(normal, names, "--", task) : suggestion(normal, names, "--");
  throw UsageError(fmt::format("{} does not have --{}{}", command.name, printable(name), meant));
}

constexpr std::string_view negation = "no-";  // as Trainer's --no_dataloader_pin_memory

/// What stands before and after "=" of an option's word.
struct TypedName {
  std::string typed;  ///< "max_steps"
  std::string name;   ///< "max-steps"
  std::optional<std::string> value;

  explicit TypedName(const std::string& word) : typed(word.substr(2, word.find('=') - 2)) {
    name = normalized_name(typed);
    if (word.find('=') != std::string::npos) value = word.substr(word.find('=') + 1);
  }
  /// Of --no-NAME the name, else nothing.
  std::string negated() const { return name.starts_with(negation) ? name.substr(negation.size()) : ""; }
  void refuse_value() const {
    if (value) throw UsageError(fmt::format("--{} takes no value", typed));
  }
};

/// words[i + 1], where that is no option.
std::optional<std::string> next_word(std::span<const std::string> words, std::size_t i) {
  const bool has_next = i + 1 < words.size() && !words[i + 1].starts_with("--");
  return has_next ? std::optional(words[i + 1]) : std::nullopt;
}

/// The value of a peer's option; i moves to the last word that belongs to it.
std::string peer_value(const tasks::PeerOption& option, const TypedName& typed, std::span<const std::string> words,
                       std::size_t& i) {
  if (typed.value) return *typed.value;
  const std::optional<std::string> next = next_word(words, i);
  const bool takes_next = next && (!option.is_switch || option.is_secret || parse_truth(*next));
  if (takes_next) return words[++i];
  const bool is_refused = option.why.empty();  // whatever its value
  if (!option.is_switch && !is_refused) throw UsageError(fmt::format("--{} needs a value", typed.typed));
  return option.is_switch ? "true" : "";
}

/// Takes words[i], if it is an option of peers that has no effect here, with its value. Errors: UsageError where it
/// would.
bool take_peer_option(const Command& command, const tasks::TaskKind& task, std::span<const std::string> words,
                      std::size_t& i, Sorted& sorted) {
  const TypedName typed(words[i]);
  if (!takes_peer_options(command) || find_option(typed.name, task) != nullptr) return false;
  if (const tasks::PeerOption* option = find_peer_option(typed.name, task)) {
    sorted.remarks.push_back(remark_on(*option, "--" + typed.typed, peer_value(*option, typed, words, i)));
    return true;
  }
  const tasks::PeerOption* denied = find_peer_option(typed.negated(), task);
  if (denied == nullptr || !denied->is_switch) return false;
  typed.refuse_value();
  remark_on(*denied, "--" + typed.typed, "false");
  sorted.remarks.push_back(fmt::format("--{} has no effect here: {}", typed.typed, denied->why));
  return true;
}

/// Reads the option words[i] and moves i to the last word that belongs to it.
Occurrence read_option(const Command& command, const tasks::TaskKind& task, std::span<const std::string> words,
                       std::size_t& i) {
  const TypedName typed(words[i]);
  const std::string shown = "--" + typed.typed;
  const Option* denied = find_option(typed.name, task) == nullptr ? find_option(typed.negated(), task) : nullptr;
  if (denied != nullptr && denied->is_switch() && denied->belongs_to(command.bit)) {
    typed.refuse_value();
    return {denied, shown, "false"};
  }
  const Option& option = get_option(command, task, typed.typed);
  if (typed.value) return {&option, shown, *typed.value};
  const std::optional<std::string> next = next_word(words, i);
  if (option.is_switch()) {
    // As the peers' parsers: "--bf16 True". Commands with arguments of their own take the word for one.
    const bool has_value = command.most_positional == 0 && next && parse_truth(*next);
    return {&option, shown, has_value ? words[++i] : "true"};
  }
  if (!next) {
    if (!option.alone.empty()) return {&option, shown, option.alone};
    throw UsageError(fmt::format("{} needs a value: {}", shown, option.expects));
  }
  return {&option, shown, words[++i]};
}

/// "-o", but not "-5 degrees", nor "-" for standard input.
bool looks_like_option(const std::string& word) {
  return word.size() > 1 && word[0] == '-' && std::isalpha(static_cast<unsigned char>(word[1])) != 0 &&
         word.find(' ') == std::string::npos;
}

Sorted sort_words(const Command& command, const tasks::TaskKind& task, std::span<const std::string> words) {
  Sorted sorted;
  for (std::size_t i = 0; i < words.size() && !sorted.help; ++i) {
    const std::string& word = words[i];
    if (word == "--") {
      sorted.positional.insert(sorted.positional.end(), words.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                               words.end());
      break;
    }
    if (word == "--help" || word == "-h") {
      sorted.help = true;
    } else if (word.starts_with("--") && take_peer_option(command, task, words, i, sorted)) {
      continue;
    } else if (word.starts_with("--")) {
      const std::size_t first = i;
      sorted.options.push_back(read_option(command, task, words, i));
      const auto begin = words.begin() + static_cast<std::ptrdiff_t>(first);
      sorted.options.back().words.assign(begin, words.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    } else if (looks_like_option(word)) {
      throw UsageError(fmt::format("{} does not have {}; options begin with --", command.name, printable(word)));
    } else {
      sorted.positional.push_back(word);
    }
  }
  return sorted;
}

void check_positional(const Command& command, const std::vector<std::string>& positional) {
  if (positional.size() > command.most_positional) {
    throw UsageError(fmt::format("{}: \"{}\" is one argument too many; usage: mylos {} {}", command.name,
                                 printable(positional[command.most_positional]), command.name, command.arguments));
  }
  if (positional.size() < command.least_positional) {
    throw UsageError(
        fmt::format("{}: too few arguments; usage: mylos {} {}", command.name, command.name, command.arguments));
  }
}

/// run.json records the options of these commands as JSON, which is UTF-8.
void check_recordable(const Command& command, const Occurrence& occurrence) {
  const bool is_recorded = command.bit == train_command || command.bit == compare_command;
  const std::optional<std::size_t> wrong = is_recorded ? first_invalid_utf8(occurrence.value) : std::nullopt;
  if (!wrong) return;
  throw UsageError(fmt::format("{}: not UTF-8 at byte {}, so run.json cannot record it; rename the file or directory",
                               occurrence.typed, *wrong));
}

/// Where timings of matrix products are kept; nowhere without a home.
std::filesystem::path gemm_cache() {
  try {
    return data::cache_directory() / "gemm";
  } catch (const std::runtime_error&) {
    return {};
  }
}

}  // namespace

Arguments default_arguments(const Command& command, const tasks::TaskKind& task) {
  Arguments arguments;
  arguments.task = &task;
  arguments.run = tasks::default_run(task, command.bit);
  arguments.run.engine.gemm.cache = gemm_cache();
  if (command.bit == doctor_command) arguments.collective_timeout = 60.0;
  return arguments;
}

std::string suggestion(std::string_view text, std::span<const std::string> names, std::string_view prefix) {
  const std::string nearest = nearest_name(text, names);
  return nearest.empty() ? "" : fmt::format("; did you mean {}{}?", prefix, nearest);
}

void set_option(Arguments& arguments, const Option& option, std::string_view text, std::string_view name) {
  if (option.parse(arguments, text)) return;
  throw UsageError(fmt::format("{} {}: expected {}", name, text.empty() ? "\"\"" : printable(text), option.expects));
}

Arguments parse_arguments(const Command& command, std::span<const std::string> words) {
  const tasks::TaskKind& task = choose_task(command, words);
  Sorted sorted = sort_words(command, task, words);
  Arguments arguments = default_arguments(command, task);
  arguments.help = sorted.help;
  if (sorted.help) return arguments;
  check_positional(command, sorted.positional);
  arguments.positional = std::move(sorted.positional);
  arguments.remarks = std::move(sorted.remarks);
  for (const Occurrence& occurrence : sorted.options) {
    if (occurrence.option->name != "config") continue;
    set_option(arguments, *occurrence.option, occurrence.value, occurrence.typed);
    read_config_file(arguments.config, command, arguments);
  }
  for (const Occurrence& occurrence : sorted.options) {
    check_recordable(command, occurrence);
    set_option(arguments, *occurrence.option, occurrence.value, occurrence.typed);
    arguments.sources.given.insert(occurrence.option->name);
    arguments.typed.push_back({occurrence.option->name, occurrence.words});
  }
  settle(command, arguments);
  return arguments;
}

}  // namespace mylos::app
