#include "tasks/question_answering/squad_order.hpp"

#include "core/base/files/file_reader.hpp"
#include "core/base/files/json.hpp"
#include "core/base/text/printable.hpp"
#include "tasks/interface/order_file.hpp"

#include <fmt/format.h>

#include <string_view>
#include <unordered_map>

namespace mylos::tasks {
namespace {

/// Returns the first window of each question, by question id.
std::unordered_map<std::string_view, std::size_t> first_windows(const SquadWindows& windows) {
  std::unordered_map<std::string_view, std::size_t> first;
  for (std::size_t window = 0; window < windows.count(); ++window) {
    first.emplace(windows.dataset.questions[windows.features.features[window].question].id, window);
  }
  return first;
}

std::size_t find_window(const Json& entry, const std::unordered_map<std::string_view, std::size_t>& first,
                        const SquadWindows& windows, std::string_view line) {
  const JsonLocation location(line);
  as_list(entry, location);
  if (entry.size() != 2) location.fail("a sample is [question id, window index]");
  const std::string id = as_id(entry[0], location);
  const std::size_t window = as_count(entry[1], location);
  const auto found = first.find(id);
  if (found == first.end()) location.fail(fmt::format("the training data has no question \"{}\"", printable(id)));
  const std::size_t sample = found->second + window;
  const auto& features = windows.features.features;
  if (sample >= features.size() || features[sample].question != features[found->second].question) {
    location.fail(fmt::format("question \"{}\" has no window {}", printable(id), window));
  }
  return sample;
}

}  // namespace

std::vector<std::vector<std::size_t>> read_order(const std::filesystem::path& path, const SquadWindows& windows) {
  const auto first = first_windows(windows);
  return read_order_file(FileReader(), path, "[question id, window index]",
                         [&](const Json& entry, std::string_view line, std::vector<std::size_t>& step) {
                           step.push_back(find_window(entry, first, windows, line));
                         });
}

}  // namespace mylos::tasks
