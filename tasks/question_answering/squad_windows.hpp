#pragma once

#include "core/base/notice.hpp"
#include "core/batch.hpp"
#include "data/squad/features.hpp"
#include "tasks/question_answering/squad_config.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

/// Cuts questions into windows and makes batches of them.
namespace mylos::tasks {

/// A data set and its windows.
struct SquadWindows {
  data::SquadDataset dataset;
  data::FeatureSet features;

  std::size_t count() const { return features.features.size(); }
  std::size_t length(std::size_t window) const { return features.length(features.features[window]); }
  /// Returns the length of each window, in tokens.
  std::vector<std::size_t> lengths() const;
  /// Returns the total tokens of all windows.
  std::size_t tokens() const;
  /// Returns a checksum over ids and labels of all windows: equal if the same data is trained on or evaluated.
  std::uint32_t checksum() const;
  /// Returns a checksum over everything that affects scores: `checksum()`, the version, and each question's id, context
  /// and gold answers.
  std::uint32_t scored_checksum() const;
};
inline auto members(SquadWindows& windows) {
  auto& [dataset, features] = windows;  // does not compile if one is forgotten
  return std::tie(dataset, features);
}

/// Moves answers that are one or two characters off to their text, and says how many. Errors: there are some, and the
/// windows of the file are `prepared`, so it is too late.
void repair_answers(data::SquadDataset& dataset, const std::string& file, bool prepared, const Notice& notice);

/// Reports answers that cannot be trained on, because they do not match their context, to `notice`. Errors:
/// std::runtime_error naming the file if `strict`.
void check_answers(const data::SquadDataset& dataset, const std::string& file, bool strict, const Notice& notice);

/// Returns how `config` cuts questions into windows.
data::FeatureOptions feature_options(const SquadConfig& config, bool training);

/// Reads `path` (SQuAD's JSON, or a feature file of `mylos prepare`) and cuts its questions into windows. Errors:
/// std::runtime_error naming the file; with config.strict also on answers that do not match their text.
SquadWindows load_windows(const std::filesystem::path& path, const data::Tokenizer& tokenizer,
                          const SquadConfig& config, std::optional<std::size_t> limit, bool training,
                          const Notice& notice);
/// Cuts questions in memory into windows.
SquadWindows cut_windows(data::SquadDataset dataset, const data::Tokenizer& tokenizer, const SquadConfig& config,
                         bool training);

/// Makes batches of windows. Keeps its host buffers between calls.
class WindowBatcher {
 public:
  explicit WindowBatcher(const SquadWindows& windows) : windows_(windows) {}

  /// Packs these windows; `ids` are their positions in the global batch.
  void assemble(std::span<const std::size_t> windows, std::span<const std::uint32_t> ids, Batch& batch) const;

 private:
  void append(const data::Feature& feature) const;

  const SquadWindows& windows_;
  mutable std::vector<std::size_t> lengths_;
  mutable std::vector<std::int32_t> tokens_, segments_, starts_, ends_;
};

}  // namespace mylos::tasks
