#include "tasks/image_classification/image_labels.hpp"

#include "core/base/error.hpp"
#include "core/base/text/printable.hpp"
#include "core/base/text/quantities.hpp"
#include "data/huggingface/label_names.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <string_view>

namespace mylos::tasks {

std::string labels_text(const std::vector<std::string>& labels, std::size_t most) {
  std::vector<std::string> first;
  for (std::size_t i = 0; i < std::min(most, labels.size()); ++i) first.push_back(printable(labels[i]));
  return fmt::format("{} ({}{})", count_of(labels.size(), "label"), fmt::join(first, ", "),
                     labels.size() > most ? ", ..." : "");
}

std::vector<std::string> name_labels(std::size_t count, const std::vector<std::string>& names,
                                     const std::string& data) {
  if (count == 0 || count == names.size()) return names;
  ensure(count > names.size(),
         fmt::format("--labels {}: {} has {}; use at least as many", count, data, labels_text(names)));
  std::vector<std::string> labels = data::unnamed_labels(count);
  std::ranges::copy(names, labels.begin());
  return labels;
}

std::vector<std::int32_t> match_labels(const std::vector<std::string>& data_labels, const std::string& data,
                                       const std::vector<std::string>& model_labels, const std::string& model,
                                       const std::string& advice) {
  std::map<std::string_view, std::int32_t> numbers;
  for (std::size_t i = 0; i < model_labels.size(); ++i) {
    numbers.emplace(model_labels[i], static_cast<std::int32_t>(i));
  }
  std::vector<std::int32_t> matched;
  for (const std::string& label : data_labels) {
    const auto found = numbers.find(label);
    if (found != numbers.end()) matched.push_back(found->second);
  }
  if (matched.size() == data_labels.size()) return matched;
  if (!matched.empty() || data_labels.size() != model_labels.size()) {
    fail(fmt::format("{} has {}, and {} was made for {}; {}", data, labels_text(data_labels), model,
                     labels_text(model_labels), advice));
  }
  matched.resize(data_labels.size());
  std::iota(matched.begin(), matched.end(), 0);
  return matched;
}

}  // namespace mylos::tasks
