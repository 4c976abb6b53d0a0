#include "core/base/options/option_values.hpp"

#include "core/base/options/walltime.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <system_error>
#include <utility>

namespace mylos {
namespace {

/// Parses `text` as a number; nullopt unless the whole text is one.
template <class Number>
std::optional<Number> parse_whole(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Returns the restricted Damerau distance: the number of insertions, deletions, replacements and exchanges of adjacent
/// characters that turn `a` into `b`.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), now(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, replaced});
      const bool exchanged = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (exchanged) now[j] = std::min(now[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(now);
  }
  return last[b.size()];
}

}  // namespace

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::optional<std::uint64_t> parse_count(std::string_view text, const CountRange& range) {
  const auto value = parse_whole<std::uint64_t>(text);
  return value && *value >= range.smallest && *value <= range.largest ? value : std::nullopt;
}

std::optional<double> parse_real(std::string_view text, const RealRange& range) {
  const auto value = parse_whole<double>(text);
  if (!value || !std::isfinite(*value)) return std::nullopt;
  const bool above = range.open_below ? *value > range.smallest : *value >= range.smallest;
  const bool below = range.open_above ? *value < range.largest : *value <= range.largest;
  return above && below ? value : std::nullopt;
}

std::optional<bool> parse_truth(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const char* word : {"true", "yes", "t", "y", "1"}) {
    if (lower == word) return true;
  }
  for (const char* word : {"false", "no", "f", "n", "0"}) {
    if (lower == word) return false;
  }
  return std::nullopt;
}

std::optional<double> parse_duration(std::string_view text) {
  if (const auto clock = parse_walltime(text)) return *clock > 0.0 ? clock : std::nullopt;
  static constexpr std::pair<char, double> units[] = {{'s', 1.0}, {'m', 60.0}, {'h', 3600.0}, {'d', 86400.0}};
  double seconds = 1.0;
  for (const auto& [letter, length] : units) {
    if (!text.ends_with(letter)) continue;
    seconds = length;
    text.remove_suffix(1);
    break;
  }
  const auto value = parse_real(text, {0.0, 1e9, true, false});
  return value ? std::optional(*value * seconds) : std::nullopt;
}

std::vector<std::string> names_of(std::span<const Choice> choices) {
  std::vector<std::string> names;
  for (const Choice& choice : choices) names.push_back(choice.name);
  return names;
}

std::optional<std::string> parse_choice(std::string_view text, std::span<const Choice> choices) {
  for (const Choice& choice : choices) {
    if (text == choice.name || std::ranges::find(choice.aliases, text) != choice.aliases.end()) return choice.name;
  }
  return std::nullopt;
}

std::string describe(const CountRange& range) {
  if (range.largest == UINT64_MAX) return fmt::format("a whole number from {} to 2^64 - 1", range.smallest);
  return fmt::format("a whole number from {} to {}", range.smallest, range.largest);
}

std::string describe(const RealRange& range) {
  if (range.smallest == -unbounded) return "a number";
  const std::string above = fmt::format("a number {} {:g}", range.open_below ? "above" : "of at least", range.smallest);
  if (range.largest == unbounded) return above;
  if (!range.open_below && !range.open_above)
    return fmt::format("a number from {:g} to {:g}", range.smallest, range.largest);
  return fmt::format("{} and {} {:g}", above, range.open_above ? "below" : "at most", range.largest);
}

std::string describe(std::span<const Choice> choices) {
  std::string text;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (i > 0) text += i + 1 == choices.size() ? " or " : ", ";
    text += choices[i].name;
  }
  return text;
}

std::string nearest_name(std::string_view text, std::span<const std::string> names) {
  std::string best;
  std::size_t best_distance = 1 + std::max<std::size_t>(2, text.size() / 3);
  for (const std::string& name : names) {
    // A prefix of at least four characters ("learning") always counts as close.
    const std::size_t distance = text.size() >= 4 && name.starts_with(text) ? 1 : edit_distance(text, name);
    if (distance < best_distance && distance < name.size()) {
      best = name;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace mylos
