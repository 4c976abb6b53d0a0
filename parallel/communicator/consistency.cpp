#include "parallel/communicator/consistency.hpp"

#include "core/base/error.hpp"
#include "parallel/communicator/agreement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

namespace mylos::parallel {
namespace {

/// Characters of a long value that are shown, in total and before the first difference.
constexpr std::size_t shown = 80, shown_before = 30;

/// Returns the values as text: a rank that runs another build, which this check is to find, reads it without an error.
std::string joined(std::span<const NamedValue> values) {
  std::string text;
  for (const auto& [name, value] : values) text += fmt::format("{} {} {}{}", name.size(), value.size(), name, value);
  return text;
}

std::size_t take_size(std::string_view& text) {
  std::size_t size = 0;
  while (!text.empty() && text.front() != ' ') {
    size = 10 * size + static_cast<std::size_t>(text.front() - '0');
    text.remove_prefix(1);
  }
  text.remove_prefix(std::min<std::size_t>(1, text.size()));
  return size;
}

std::string take(std::string_view& text, std::size_t size) {
  const std::string part(text.substr(0, size));
  text.remove_prefix(part.size());
  return part;
}

/// Inverse of `joined`.
std::vector<NamedValue> parted(std::string_view text) {
  std::vector<NamedValue> values;
  while (!text.empty()) {
    const std::size_t name_size = take_size(text), value_size = take_size(text);
    std::string name = take(text, name_size);
    values.emplace_back(std::move(name), take(text, value_size));
  }
  return values;
}

/// Returns a value in quotes. A long value is cut, starting shortly before `at`.
std::string excerpt(const std::string& value, std::size_t at) {
  if (value.size() <= shown) return fmt::format("\"{}\"", value);
  const std::size_t begin = at > shown_before ? at - shown_before : 0;
  const bool cut = begin + shown < value.size();
  return fmt::format("\"{}{}{}\"", begin > 0 ? "..." : "", value.substr(begin, shown), cut ? "..." : "");
}

void compare(const NamedValue& first, const NamedValue& mine) {
  ensure(first.first == mine.first,
         fmt::format("gives \"{}\" where rank 0 gives \"{}\": start the same program on every rank", mine.first,
                     first.first));
  if (first.second == mine.second) return;
  const auto position = std::mismatch(first.second.begin(), first.second.end(), mine.second.begin(), mine.second.end());
  const auto at = static_cast<std::size_t>(position.first - first.second.begin());
  fail(fmt::format("{} is {}, on rank 0 it is {}: make them the same on every node", mine.first,
                   excerpt(mine.second, at), excerpt(first.second, at)));
}

void compare(std::span<const NamedValue> first, std::span<const NamedValue> mine) {
  for (std::size_t i = 0; i < std::min(first.size(), mine.size()); ++i) compare(first[i], mine[i]);
  ensure(first.size() == mine.size(),
         fmt::format("gives {} values where rank 0 gives {}: start the same program on every rank", mine.size(),
                     first.size()));
}

}  // namespace

void expect_equal_on_all_ranks(Communicator& ranks, std::span<const NamedValue> values) {
  const std::vector<NamedValue> first = parted(broadcast(ranks, joined(values)));
  on_every_rank(ranks, [&] { compare(first, values); });
}

}  // namespace mylos::parallel
