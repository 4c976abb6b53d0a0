#pragma once

#include "app/options/options.hpp"
#include "app/options/values.hpp"

#include <string>
#include <utility>

/// How the kinds of options are read into a field of Arguments and printed from it. `field` is a generic callable that
/// gives the field: [](auto& a) -> auto& { return a.run.squad.batch; }.
namespace mylos::app {

/// The columns of a table of options; the kind of option adds the rest.
inline Option named(std::string name, std::vector<std::string> aliases, std::string placeholder,
                    std::string_view section, unsigned commands, std::string help) {
  return {std::move(name), std::move(aliases), std::move(placeholder), section, commands, std::move(help)};
}

template <class T>
nlohmann::ordered_json to_json(const T& value) {
  return value;
}

/// null where there is none.
template <class T>
nlohmann::ordered_json to_json(const std::optional<T>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

/// A whole number, which may be absent (std::optional).
template <class Field>
Option count_option(Option option, CountRange range, Field field) {
  option.expects = describe(range);
  option.parse = [range, field](Arguments& arguments, std::string_view text) {
    const auto value = parse_count(text, range);
    if (value) field(arguments) = *value;
    return value.has_value();
  };
  option.print = [field](const Arguments& arguments) { return to_json(field(arguments)); };
  return option;
}

/// A whole number whose 0 means "not given".
template <class Field>
Option count_or_unset_option(Option option, CountRange range, Field field) {
  option = count_option(std::move(option), range, field);
  option.print = [field](const Arguments& arguments) {
    return field(arguments) == 0 ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(field(arguments));
  };
  return option;
}

/// A number, which may be absent.
template <class Field>
Option real_option(Option option, RealRange range, Field field) {
  option.expects = describe(range);
  option.parse = [range, field](Arguments& arguments, std::string_view text) {
    const auto value = parse_real(text, range);
    if (value) field(arguments) = *value;
    return value.has_value();
  };
  option.print = [field](const Arguments& arguments) { return to_json(field(arguments)); };
  return option;
}

/// A duration in seconds, which may be absent.
template <class Field>
Option duration_option(Option option, Field field) {
  option.expects = duration_expected;
  option.parse = [field](Arguments& arguments, std::string_view text) {
    const auto value = parse_duration(text);
    if (value) field(arguments) = *value;
    return value.has_value();
  };
  option.print = [field](const Arguments& arguments) { return to_json(field(arguments)); };
  return option;
}

/// One name of a list, kept as a string, which may be absent.
template <class Field>
Option choice_option(Option option, std::vector<Choice> choices, Field field) {
  option.expects = describe(choices);
  option.choices = names_of(choices);
  option.parse = [choices = std::move(choices), field](Arguments& arguments, std::string_view text) {
    const auto value = parse_choice(text, choices);
    if (value) field(arguments) = *value;
    return value.has_value();
  };
  option.print = [field](const Arguments& arguments) { return to_json(field(arguments)); };
  return option;
}

/// A file or directory. Recorded absolute, so that a run.json means the same from every directory.
template <class Field>
Option path_option(Option option, Field field) {
  option.expects = "a path";
  option.parse = [field](Arguments& arguments, std::string_view text) {
    if (!text.empty()) field(arguments) = text;
    return !text.empty();
  };
  option.print = [field](const Arguments& arguments) -> nlohmann::ordered_json {
    if (field(arguments).empty()) return nullptr;
    return std::filesystem::absolute(field(arguments)).lexically_normal().string();
  };
  return option;
}

/// true or false; the option alone means true.
template <class Field>
Option switch_option(Option option, Field field) {
  option.expects = "nothing, true or false";
  option.parse = [field](Arguments& arguments, std::string_view text) {
    const auto value = parse_truth(text);
    if (value) field(arguments) = *value;
    return value.has_value();
  };
  option.print = [field](const Arguments& arguments) { return to_json(field(arguments)); };
  return option;
}

/// The values of --mode and --modes.
std::vector<Choice> mode_choices();

/// `option` as something that is done, not a setting that run.json keeps.
inline Option unrecorded(Option option) {
  option.print = {};
  return option;
}

}  // namespace mylos::app
