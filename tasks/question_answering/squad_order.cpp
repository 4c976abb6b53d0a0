#include "tasks/question_answering/squad_order.hpp"

#include "core/base/crc32c.hpp"
#include "core/base/error.hpp"
#include "core/base/json.hpp"
#include "core/base/printable.hpp"
#include "core/base/text_file.hpp"

#include <fmt/format.h>

#include <string_view>
#include <unordered_map>

namespace mylos::tasks {
namespace {

/// The first window of each question, by the question's id.
std::unordered_map<std::string_view, std::size_t> first_windows(const SquadWindows& windows) {
  std::unordered_map<std::string_view, std::size_t> first;
  for (std::size_t window = 0; window < windows.count(); ++window) {
    first.emplace(windows.dataset.questions[windows.features.features[window].question].id, window);
  }
  return first;
}

std::size_t find_window(const Json& entry, const std::unordered_map<std::string_view, std::size_t>& first,
                        const SquadWindows& windows, std::string_view line) {
  const JsonPlace place(line);
  as_list(entry, place);
  if (entry.size() != 2) place.fail("a sample is [question id, window index]");
  const std::string id = as_id(entry[0], place);
  const std::size_t window = as_count(entry[1], place);
  const auto found = first.find(id);
  if (found == first.end()) place.fail(fmt::format("the training data has no question \"{}\"", printable(id)));
  const std::size_t sample = found->second + window;
  const auto& features = windows.features.features;
  if (sample >= features.size() || features[sample].question != features[found->second].question) {
    place.fail(fmt::format("question \"{}\" has no window {}", printable(id), window));
  }
  return sample;
}

}  // namespace

std::vector<std::vector<std::size_t>> read_order(const std::filesystem::path& path, const SquadWindows& windows) {
  const std::string text = read_text_file(path);
  const auto first = first_windows(windows);
  std::vector<std::vector<std::size_t>> order;
  std::size_t number = 0;
  for (const std::string_view line : split_lines(text)) {
    const std::string name = fmt::format("{}: line {}", path.string(), ++number);
    const JsonPlace place(name);
    if (line.find_first_not_of(" \t") == std::string_view::npos) {
      place.fail("is blank; each line is a step, a list of [question id, window index]");
    }
    const Json step = parse_json(line, name);
    if (as_list(step, place).empty()) place.fail("a step has no samples");
    order.emplace_back();
    for (const Json& entry : step) order.back().push_back(find_window(entry, first, windows, name));
  }
  ensure(!order.empty(), fmt::format("{}: no steps in it", path.string()));
  return order;
}

std::uint32_t order_checksum(const std::vector<std::vector<std::size_t>>& order) {
  std::vector<std::uint64_t> values;
  for (const std::vector<std::size_t>& step : order) {
    values.push_back(step.size());
    values.insert(values.end(), step.begin(), step.end());
  }
  return crc32c(std::as_bytes(std::span(values)));
}

}  // namespace mylos::tasks
