#pragma once

#include "core/base/options/option.hpp"
#include "core/base/options/option_values.hpp"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// Kinds of options: each function adds the parsing and printing of one field of the target. `field` is a generic
/// callable that returns the field: MYLOS_FIELD(batch).
#define MYLOS_FIELD(...) \
  [](auto& target) -> auto& { return target.__VA_ARGS__; }

namespace mylos {

/// Creates an option from the columns of an option table; the functions below add the rest.
template <class Target>
Option<Target> named_option(std::string name, std::string placeholder, std::string_view section,
                            std::string_view commands, std::string help, OptionTraits traits = {}) {
  return {{std::move(name), std::move(placeholder), section, std::string(commands), std::move(help), traits}};
}

template <class T>
nlohmann::ordered_json option_json(const T& value) {
  return value;
}

/// null if there is no value.
template <class T>
nlohmann::ordered_json option_json(const std::optional<T>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

/// Returns the name of an enumerator, null if there is no value.
template <class T>
nlohmann::ordered_json name_or_null(const std::optional<T>& value) {
  return value ? nlohmann::ordered_json(to_string(*value)) : nlohmann::ordered_json(nullptr);
}

/// Parses the words between commas; returns nullopt if `parse` returns that for one of them.
template <class T, class Parse>
std::optional<std::vector<T>> parse_list(std::string_view text, Parse parse) {
  std::vector<T> values;
  for (const std::string& word : split(text, ',')) {
    const auto value = parse(word);
    if (!value) return std::nullopt;
    values.push_back(static_cast<T>(*value));
  }
  return values;
}

/// Adds a value that `parse` makes from the text; `parse` returns nullopt for invalid text. The field may be a
/// std::optional.
template <class Target, class Field, class Parse>
Option<Target> parsed_option(Option<Target> option, std::string expects, Field field, Parse parse) {
  option.expects = std::move(expects);
  option.parse = [field, parse = std::move(parse)](Target& target, std::string_view text) {
    const auto value = parse(text);
    if (value) field(target) = *value;
    return value.has_value();
  };
  option.print = [field](const Target& target) { return option_json(field(target)); };
  option.copy = [field](Target& target, const Target& source) { field(target) = field(source); };
  return option;
}

/// Adds a whole number; the field may be a std::optional.
template <class Target, class Field>
Option<Target> count_option(Option<Target> option, CountRange range, Field field) {
  return parsed_option(std::move(option), describe(range), field,
                       [range](std::string_view text) { return parse_count(text, range); });
}

/// Adds a whole number for which 0 means "not given".
template <class Target, class Field>
Option<Target> count_or_unset_option(Option<Target> option, CountRange range, Field field) {
  option = count_option(std::move(option), range, field);
  option.print = [field](const Target& target) {
    return field(target) == 0 ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(field(target));
  };
  return option;
}

/// Adds a real number; the field may be a std::optional.
template <class Target, class Field>
Option<Target> real_option(Option<Target> option, RealRange range, Field field) {
  return parsed_option(std::move(option), describe(range), field,
                       [range](std::string_view text) { return parse_real(text, range); });
}

/// Adds a text, which is not empty unless it is unset.
template <class Target, class Field>
Option<Target> text_option(Option<Target> option, std::string expects, Field field) {
  option = parsed_option(std::move(option), std::move(expects), field, [](std::string_view text) {
    return text.empty() ? std::nullopt : std::optional<std::string>(text);
  });
  option.print = [field](const Target& target) -> nlohmann::ordered_json {
    return field(target).empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(field(target));
  };
  return option;
}

/// Adds a duration in seconds; the field may be a std::optional.
template <class Target, class Field>
Option<Target> duration_option(Option<Target> option, Field field) {
  return parsed_option(std::move(option), duration_expected, field, parse_duration);
}

/// Adds a boolean; the option without a value means true.
template <class Target, class Field>
Option<Target> switch_option(Option<Target> option, Field field) {
  return parsed_option(std::move(option), "nothing, true or false", field, parse_truth);
}

/// Adds a choice from a list of names, stored as a string; the field may be a std::optional.
template <class Target, class Field>
Option<Target> choice_option(Option<Target> option, std::vector<Choice> choices, Field field) {
  option.choices = names_of(choices);
  std::string expects = describe(choices);
  return parsed_option(std::move(option), std::move(expects), field,
                       [choices = std::move(choices)](std::string_view text) { return parse_choice(text, choices); });
}

/// Adds a choice among the names of an enumeration; the field may be a std::optional.
template <class Target, class Field, class Parse, class Print>
Option<Target> enumeration_option(Option<Target> option, std::vector<Choice> choices, Field field, Parse from_name,
                                  Print to_name) {
  option.expects = describe(choices);
  option.choices = names_of(choices);
  option.parse = [choices = std::move(choices), field, from_name](Target& target, std::string_view text) {
    const auto name = parse_choice(text, choices);
    if (name) field(target) = from_name(*name);
    return name.has_value();
  };
  option.print = [field, to_name](const Target& target) -> nlohmann::ordered_json { return to_name(field(target)); };
  return option;
}

/// Adds a file or directory. It is recorded as an absolute path, so that run.json is valid from every directory.
template <class Target, class Field>
Option<Target> path_option(Option<Target> option, Field field) {
  option.expects = "a path";
  option.parse = [field](Target& target, std::string_view text) {
    if (!text.empty()) field(target) = text;
    return !text.empty();
  };
  option.print = [field](const Target& target) -> nlohmann::ordered_json {
    if (field(target).empty()) return nullptr;
    return std::filesystem::absolute(field(target)).lexically_normal().string();
  };
  return option;
}

/// Replaces the description of `option` in the help of some commands.
template <class Target>
Option<Target> with_help(Option<Target> option, std::vector<CommandHelp> command_help) {
  option.command_help = std::move(command_help);
  return option;
}

/// Marks `option` as an action, not a setting: run.json does not record it.
template <class Target>
Option<Target> unrecorded(Option<Target> option) {
  option.print = {};
  return option;
}

}  // namespace mylos
