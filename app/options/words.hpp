#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

/// Sorts the words of a command line. cxxopts does it; nothing else of the program knows that.
namespace mylos::app {

/// A name that may be typed, as the table of options writes it.
struct OptionName {
  std::string name;
  bool takes_word = true;  ///< the word after it is its value; else it is a switch
};

/// An option as it was typed.
struct ReadOption {
  std::string name;                  ///< as an OptionName has it: "max-steps"; none has an unknown one's
  std::string typed;                 ///< "--max_steps"
  std::optional<std::string> value;  ///< empty where none was typed, and for an unknown name
  std::vector<std::string> words;    ///< all that belong to it
};

struct ReadWords {
  std::vector<ReadOption> options;      ///< in the order in which they were typed
  std::vector<std::string> dashed;      ///< "-o", of which no option is typed
  std::vector<std::string> positional;  ///< with all that follows --
  bool help = false;                    ///< --help or -h is among them
};

/// Whether the word after a switch is its value, where it is true or false: "--bf16 True".
enum class TruthWords { values, positional };

/// Sorts `words`. `names` are unique and have two characters or more, and "help" is not among them. Never fails.
ReadWords read_words(std::span<const OptionName> names, std::span<const std::string> words, TruthWords truths);

}  // namespace mylos::app
