#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Values of options: numbers within a range and names from a list. The whole text must match: "12abc", " 3" and
/// "1e999" are not numbers.
namespace mylos {

/// Integers from `smallest` to `largest`, both included.
struct CountRange {
  std::uint64_t smallest = 1;
  std::uint64_t largest = 1'000'000'000;
};

/// The end of a range of finite numbers without an upper bound.
inline constexpr double unbounded = std::numeric_limits<double>::infinity();

/// Finite numbers between two ends, which are included unless marked as open.
struct RealRange {
  double smallest = 0.0;
  double largest = 1.0;
  bool open_below = false;
  bool open_above = false;
};

/// A name in a list, and its names in other programs.
struct Choice {
  std::string name;
  std::vector<std::string> aliases = {};
};

/// Splits `text` at the separators: "a,b" gives two parts, "" one empty part.
std::vector<std::string> split(std::string_view text, char separator);

/// Parse a number; return nullopt if `text` is not entirely a number, or is out of range.
std::optional<std::uint64_t> parse_count(std::string_view text, const CountRange& range);
std::optional<double> parse_real(std::string_view text, const RealRange& range);

/// Parses true, yes, t, y, 1 or false, no, f, n, 0 in any case, like Hugging Face's parser; nullopt for other words.
std::optional<bool> parse_truth(std::string_view text);

/// Parses "90s", "10m", "2h", "1:30:00" (hours, minutes, seconds), "5:00" (minutes, seconds), "1-00:00:00" (days first)
/// or a plain number of seconds. Returns seconds; nullopt if `text` is malformed or the duration is zero.
std::optional<double> parse_duration(std::string_view text);
inline constexpr const char* duration_expected = "a duration: 90s, 10m, 2h, 1:30:00 or 1-00:00:00";

/// Returns the names of all choices, without aliases.
std::vector<std::string> names_of(std::span<const Choice> choices);

/// Returns the name of the choice that has `text` as its name or alias, case-sensitively; nullopt if there is none.
std::optional<std::string> parse_choice(std::string_view text, std::span<const Choice> choices);

/// Describe valid values for a message: "a whole number from 1 to 512", "a number above 0 and at most 1", "float or
/// bfloat16".
std::string describe(const CountRange& range);
std::string describe(const RealRange& range);
std::string describe(std::span<const Choice> choices);

/// Returns the one of `names` closest to a misspelt `text`; empty if none is close.
std::string nearest_name(std::string_view text, std::span<const std::string> names);

}  // namespace mylos
