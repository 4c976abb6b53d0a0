#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

/// Splits the words of a command line into options and arguments. Hides cxxopts from the rest of the program.
namespace mylos::app {

/// An accepted name, as written in the option table.
struct OptionName {
  std::string name;
  bool takes_word = true;  ///< whether the next word is its value; otherwise it is a switch
};

/// An option as typed.
struct ReadOption {
  std::string name;                  ///< normalized as in OptionName: "max-steps"; may be unknown
  std::string typed;                 ///< "--max_steps"
  std::optional<std::string> value;  ///< nullopt if no value was typed, and for unknown names
  std::vector<std::string> words;    ///< all words that belong to it
};

struct ReadWords {
  std::vector<ReadOption> options;      ///< in the order typed
  std::vector<std::string> dashed;      ///< words such as "-o", which no option uses
  std::vector<std::string> positional;  ///< including all words after "--"
  bool help = false;                    ///< whether --help or -h is among the words
};

/// Whether "true" or "false" after a switch is its value ("--bf16 True") or a positional word.
enum class TruthWords { values, positional };

/// Splits `words`. `names` must be unique, at least two characters long, and not contain "help". Never fails.
ReadWords read_words(std::span<const OptionName> names, std::span<const std::string> words, TruthWords truths);

}  // namespace mylos::app
