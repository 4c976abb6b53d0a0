#include "app/options/words.hpp"

#include "app/options/options.hpp"
#include "core/base/options/option_values.hpp"

#include <cxxopts.hpp>

#include <algorithm>
#include <cctype>
#include <set>
#include <string>
#include <string_view>

namespace mylos::app {
namespace {

// Values and positional words are passed to cxxopts with this prefix, so that none looks like an option. An option
// without a value is passed with `no_value`.
constexpr char value_mark = '=';
constexpr const char* no_value = "!";

/// The word of an option, split at its first "=".
struct TypedName {
  std::string typed;  ///< "--max_steps"
  std::string name;   ///< "max-steps"
  std::optional<std::string> value;

  explicit TypedName(const std::string& word) : typed(word.substr(0, word.find('='))) {
    name = normalized_name(typed.substr(2));
    if (typed.size() < word.size()) value = word.substr(typed.size() + 1);
  }
};

bool is_option(const std::string& word) { return word.starts_with("--"); }

/// Matches "-o", but not "-5 degrees" or "-" (standard input).
bool looks_like_option(const std::string& word) {
  return word.size() > 1 && word[0] == '-' && std::isalpha(static_cast<unsigned char>(word[1])) != 0 &&
         word.find(' ') == std::string::npos;
}

/// Returns `name` for cxxopts, which allows no dots. Our names contain no "_".
std::string declared_name(std::string name) {
  std::ranges::replace(name, '.', '_');
  return name;
}

/// Declares the names that are among the words: to declare all takes longer than everything else.
cxxopts::Options declare(std::span<const OptionName> names, std::span<const std::string> words) {
  std::set<std::string> typed;
  for (const std::string& word : words) {
    if (is_option(word)) typed.insert(TypedName(word).name);
  }
  cxxopts::Options options("mylos");
  options.allow_unrecognised_options();
  options.add_options()("help", "", cxxopts::value<std::string>()->implicit_value(no_value));
  for (const OptionName& each : names) {
    if (!typed.contains(each.name)) continue;
    const auto value = cxxopts::value<std::string>();
    if (!each.takes_word) value->implicit_value(no_value);
    options.add_options()(declared_name(each.name), "", value);
  }
  return options;
}

/// Returns `words` for cxxopts, which takes any word as the value of an option and none as that of a switch.
std::vector<std::string> marked_words(std::span<const std::string> words, TruthWords truths) {
  std::vector<std::string> marked;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!is_option(words[i])) {
      marked.push_back(value_mark + words[i]);
      continue;
    }
    const TypedName typed(words[i]);
    const std::string name = "--" + declared_name(typed.name);
    const bool has_next = i + 1 < words.size() && !is_option(words[i + 1]);
    if (typed.value) {
      marked.push_back(name + "=" + value_mark + *typed.value);
    } else if (has_next && truths == TruthWords::values && parse_truth(words[i + 1])) {
      marked.push_back(name + "=" + value_mark + words[++i]);
    } else {
      marked.push_back(has_next ? name : name + "=" + no_value);
    }
  }
  return marked;
}

cxxopts::ParseResult parse_marked(cxxopts::Options options, const std::vector<std::string>& words) {
  std::vector<const char*> pointers{"mylos"};
  for (const std::string& word : words) pointers.push_back(word.c_str());
  return options.parse(static_cast<int>(pointers.size()), pointers.data());
}

/// Returns the options among `words`. `arguments` holds them in the same order, without unknown ones.
std::vector<ReadOption> options_of(std::span<const std::string> words, std::span<const cxxopts::KeyValue> arguments) {
  std::vector<ReadOption> options;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!is_option(words[i])) continue;  // a separate value never looks like an option
    const TypedName typed(words[i]);
    if (arguments.empty() || arguments.front().key() != declared_name(typed.name)) {
      options.push_back({typed.name, typed.typed, std::nullopt, {words[i]}});
      continue;
    }
    const std::string& value = arguments.front().value();
    const bool has_value = value[0] == value_mark;
    const auto of_option = words.subspan(i, has_value && !typed.value ? 2 : 1);
    options.push_back({typed.name,
                       typed.typed,
                       has_value ? std::optional(value.substr(1)) : std::nullopt,
                       {of_option.begin(), of_option.end()}});
    arguments = arguments.subspan(1);
  }
  return options;
}

}  // namespace

ReadWords read_words(std::span<const OptionName> names, std::span<const std::string> words, TruthWords truths) {
  const auto end = std::ranges::find(words, "--");
  const std::span<const std::string> before(words.begin(), end);
  const cxxopts::ParseResult result = parse_marked(declare(names, before), marked_words(before, truths));
  ReadWords read;
  read.options = options_of(before, result.arguments());
  for (const std::string& marked : result.unmatched()) {
    if (marked[0] != value_mark) continue;
    const std::string word = marked.substr(1);
    read.help = read.help || word == "-h";
    (looks_like_option(word) ? read.dashed : read.positional).push_back(word);
  }
  read.help = read.help || result.count("help") != 0;
  if (end != words.end()) read.positional.insert(read.positional.end(), end + 1, words.end());
  return read;
}

}  // namespace mylos::app
