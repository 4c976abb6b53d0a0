#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// What users type after an option: numbers within a range, and names out of a list. Nothing is taken half: "12abc",
/// " 3" and "1e999" are no numbers.
namespace mylos {

/// Whole numbers from `smallest` to `largest`.
struct CountRange {
  std::uint64_t smallest = 1;
  std::uint64_t largest = 1'000'000'000;
};

/// Finite numbers between two ends, which belong to the range unless it is open there.
struct RealRange {
  double smallest = 0.0;
  double largest = 1.0;
  bool open_below = false;
  bool open_above = false;
};

/// One name of a list, and what the peers call it.
struct Choice {
  std::string name;
  std::vector<std::string> aliases;
};

/// What stands between the separators: "a,b" is two, "" is one that is empty.
std::vector<std::string> split(std::string_view text, char separator);

/// The value, or nothing where `text` is not wholly a number of the range.
std::optional<std::uint64_t> parse_count(std::string_view text, const CountRange& range);
std::optional<double> parse_real(std::string_view text, const RealRange& range);

/// true, yes, t, y, 1 or false, no, f, n, 0 in any case, as Hugging Face's parser takes them; nothing for other words.
std::optional<bool> parse_truth(std::string_view text);

/// Seconds of "90s", "10m", "2h", "1:30:00" (hours, minutes, seconds), "5:00" (minutes, seconds), "1-00:00:00" (days),
/// or of a number alone; nothing where `text` is none of these or nothing long.
std::optional<double> parse_duration(std::string_view text);
inline constexpr const char* duration_expected = "a duration: 90s, 10m, 2h, 1:30:00 or 1-00:00:00";

/// The names of all choices, without aliases.
std::vector<std::string> names_of(std::span<const Choice> choices);

/// The name that `text` is, or is an alias of; case matters.
std::optional<std::string> parse_choice(std::string_view text, std::span<const Choice> choices);

/// "a whole number from 1 to 512", "a number above 0 and at most 1", "float or bfloat16": what a message asks for.
std::string describe(const CountRange& range);
std::string describe(const RealRange& range);
std::string describe(std::span<const Choice> choices);

/// The one of `names` that a user who typed `text` most likely meant; empty where none is near.
std::string nearest_name(std::string_view text, std::span<const std::string> names);

}  // namespace mylos
