#include "app/parse.hpp"

#include "app/config_file.hpp"
#include "app/consistency.hpp"
#include "app/peer_options.hpp"
#include "app/usage_error.hpp"
#include "app/values.hpp"
#include "data/files.hpp"
#include "data/model_names.hpp"

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
  std::string value;
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

std::vector<std::string> option_names(const Command& command) {
  std::vector<std::string> names{"help"};
  for (const Option& option : option_table()) {
    if (!option.belongs_to(command.bit)) continue;
    names.push_back(option.name);
    names.insert(names.end(), option.aliases.begin(), option.aliases.end());
  }
  return names;
}

/// The option of `command` that was typed as `name`. Errors: UsageError.
const Option& get_option(const Command& command, const std::string& name) {
  const Option* option = find_option(name);
  if (option != nullptr && option->belongs_to(command.bit)) return *option;
  if (option != nullptr) {
    throw UsageError(
        fmt::format("{} does not have --{}, which belongs to {}", command.name, name, commands_with(*option)));
  }
  throw UsageError(fmt::format("{} does not have --{}{}", command.name, data::printable(name),
                               suggestion(normalized_name(name), option_names(command), "--")));
}

bool is_truth(std::string_view word) { return word == "true" || word == "True" || word == "false" || word == "False"; }

/// Takes words[i], if it is an option of peers that has no effect here, with its value. Errors: UsageError where it
/// would.
bool take_peer_option(const Command& command, std::span<const std::string> words, std::size_t& i, Sorted& sorted) {
  const std::string word = words[i].substr(2);
  const std::size_t equals = word.find('=');
  const std::string typed = word.substr(0, equals), name = normalized_name(typed);
  const PeerOption* option =
      (command.bit & train_command) != 0 && find_option(name) == nullptr ? find_peer_option(name) : nullptr;
  if (option == nullptr) return false;
  std::string value = equals != std::string::npos ? word.substr(equals + 1) : "true";
  const bool has_next = equals == std::string::npos && i + 1 < words.size() && !words[i + 1].starts_with("--");
  if (has_next && (!option->is_switch || is_truth(words[i + 1]))) value = words[++i];
  sorted.remarks.push_back(remark_on(*option, typed, value));
  return true;
}

/// Reads the option words[i] and moves i to the last word that belongs to it.
Occurrence read_option(const Command& command, std::span<const std::string> words, std::size_t& i) {
  const std::string word = words[i].substr(2);
  const std::size_t equals = word.find('=');
  const Option& option = get_option(command, word.substr(0, equals));
  if (equals != std::string::npos) return {&option, word.substr(equals + 1)};
  if (option.is_switch()) {
    // As the peers' parsers: "--bf16 True". Commands with arguments of their own take the word for one.
    const bool has_value = command.most_positional == 0 && i + 1 < words.size() && is_truth(words[i + 1]);
    return {&option, has_value ? words[++i] : "true"};
  }
  if (i + 1 == words.size() || words[i + 1].starts_with("--")) {
    if (!option.alone.empty()) return {&option, option.alone};
    throw UsageError(fmt::format("--{} needs a value: {}", word, option.expects));
  }
  return {&option, words[++i]};
}

/// "-o", but not "-5 degrees", nor "-" for standard input.
bool looks_like_option(const std::string& word) {
  return word.size() > 1 && word[0] == '-' && std::isalpha(static_cast<unsigned char>(word[1])) != 0 &&
         word.find(' ') == std::string::npos;
}

Sorted sort_words(const Command& command, std::span<const std::string> words) {
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
    } else if (word.starts_with("--") && take_peer_option(command, words, i, sorted)) {
      continue;
    } else if (word.starts_with("--")) {
      sorted.options.push_back(read_option(command, words, i));
    } else if (looks_like_option(word)) {
      throw UsageError(fmt::format("{} does not have {}; options begin with --", command.name, data::printable(word)));
    } else {
      sorted.positional.push_back(word);
    }
  }
  return sorted;
}

void check_positional(const Command& command, const std::vector<std::string>& positional) {
  if (positional.size() > command.most_positional) {
    throw UsageError(fmt::format("{}: \"{}\" is one argument too many; usage: mylos {} {}", command.name,
                                 data::printable(positional[command.most_positional]), command.name,
                                 command.arguments));
  }
  if (positional.size() < command.least_positional) {
    throw UsageError(
        fmt::format("{}: too few arguments; usage: mylos {} {}", command.name, command.name, command.arguments));
  }
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

Arguments default_arguments(const Command& command) {
  Arguments arguments;
  arguments.run.engine.gemm.cache = gemm_cache();
  // As transformers' question-answering pipeline, whose answers ask gives.
  if (command.bit == ask_command) arguments.run.squad.max_answer_length = 15;
  if (command.bit == doctor_command) arguments.collective_timeout = 60.0;
  return arguments;
}

std::string suggestion(std::string_view text, std::span<const std::string> names, std::string_view prefix) {
  const std::string nearest = nearest_name(text, names);
  return nearest.empty() ? "" : fmt::format("; did you mean {}{}?", prefix, nearest);
}

void set_option(Arguments& arguments, const Option& option, std::string_view text, std::string_view origin) {
  if (option.parse(arguments, text)) return;
  throw UsageError(fmt::format("{}{} {}: expected {}", origin, option.name,
                               text.empty() ? "\"\"" : data::printable(text), option.expects));
}

Arguments parse_arguments(const Command& command, std::span<const std::string> words) {
  Sorted sorted = sort_words(command, words);
  Arguments arguments = default_arguments(command);
  arguments.help = sorted.help;
  if (sorted.help) return arguments;
  check_positional(command, sorted.positional);
  arguments.positional = std::move(sorted.positional);
  arguments.remarks = std::move(sorted.remarks);
  for (const Occurrence& occurrence : sorted.options) {
    if (occurrence.option->name != "config") continue;
    set_option(arguments, *occurrence.option, occurrence.value, "--");
    read_config_file(arguments.config, command, arguments);
  }
  for (const Occurrence& occurrence : sorted.options) {
    set_option(arguments, *occurrence.option, occurrence.value, "--");
    arguments.given.insert(occurrence.option->name);
  }
  settle(command, arguments);
  return arguments;
}

}  // namespace mylos::app
