#include "nn/frozen_tensors.hpp"

#include "core/base/options/option_values.hpp"
#include "core/base/setting_error.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

namespace mylos::nn {
namespace {

/// "0-5" selects the numbers 0 to 5, and "layers" also means units called "layer".
bool selects_part(std::string_view pattern, std::string_view part) {
  if (pattern == part || (pattern.ends_with('s') && pattern.substr(0, pattern.size() - 1) == part)) return true;
  const std::size_t dash = pattern.find('-');
  if (dash == std::string_view::npos) return false;
  const CountRange numbers{.smallest = 0, .largest = std::numeric_limits<std::uint64_t>::max()};
  const auto first = parse_count(pattern.substr(0, dash), numbers),
             last = parse_count(pattern.substr(dash + 1), numbers);
  const auto number = parse_count(part, numbers);
  return first && last && number && *first <= *number && *number <= *last;
}

/// A pattern selects a unit by the first parts of its name: "stages.0" all blocks of a stage.
bool selects_unit(std::string_view pattern, std::string_view unit) {
  const std::vector<std::string> wanted = split(pattern, '.'), parts = split(unit, '.');
  return wanted.size() <= parts.size() && std::equal(wanted.begin(), wanted.end(), parts.begin(), selects_part);
}

bool selects(const std::string& pattern, const ParameterTable& table, const ParameterTensor& tensor) {
  if (pattern == "body") return !tensor.in_head;
  if (pattern == "head") return tensor.in_head;
  return selects_unit(pattern, table.units()[tensor.unit].name) ||
         fnmatch(pattern.c_str(), tensor.name.c_str(), 0) == 0;
}

}  // namespace

void freeze_tensors(ParameterTable& table, std::span<const std::string> patterns) {
  for (const std::string& pattern : patterns) {
    const auto is_selected = [&](const ParameterTensor& tensor) { return selects(pattern, table, tensor); };
    if (std::ranges::any_of(table.tensors(), is_selected)) continue;
    if (pattern == "head") {
      throw SettingError("freeze", pattern, "the head has no tensors of its own; it reads those of the embeddings");
    }
    throw SettingError("freeze", pattern,
                       fmt::format("selects no tensor of the model; its units are {} to {}, and its first tensor is {}",
                                   table.units().front().name, table.units().back().name, table.tensor(0).name));
  }
  table.freeze([&](const ParameterTensor& tensor) {
    return std::ranges::any_of(patterns, [&](const std::string& pattern) { return selects(pattern, table, tensor); });
  });
  if (std::ranges::any_of(table.tensors(), [](const ParameterTensor& tensor) { return tensor.group.trainable; }))
    return;
  throw SettingError("freeze", fmt::format("{}", fmt::join(patterns, ",")),
                     "no tensor of the model is left to train; leave out a pattern");
}

}  // namespace mylos::nn
