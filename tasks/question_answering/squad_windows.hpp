#pragma once

#include "core/base/notice.hpp"
#include "core/batch.hpp"
#include "data/squad/features.hpp"
#include "tasks/question_answering/squad_config.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

/// Windows of questions as batches.
namespace mylos::tasks {

/// A data set and its windows.
struct SquadWindows {
  data::SquadDataset dataset;
  data::FeatureSet features;

  std::size_t count() const { return features.features.size(); }
  std::size_t length(std::size_t window) const { return features.length(features.features[window]); }
  /// Of all windows.
  std::vector<std::size_t> lengths() const;
  /// Tokens of all windows together.
  std::size_t tokens() const;
  /// Of all windows' ids and labels: equal where the same is trained on or evaluated.
  std::uint32_t checksum() const;
  /// Of all that scores come from: `checksum()`, the version, and each question's id, context and gold answers.
  std::uint32_t scored_checksum() const;
};

/// Tells `notice` which answers cannot be trained on, as they do not match their context.
/// Errors: std::runtime_error naming the file where `strict`.
void check_answers(const data::SquadDataset& dataset, const std::string& file, bool strict, const Notice& notice);

/// How `config` cuts questions into windows.
data::FeatureOptions feature_options(const SquadConfig& config, bool training);

/// Reads `path` (SQuAD's JSON, or a feature file of `mylos prepare`) and cuts its questions into windows.
/// Errors: std::runtime_error naming the file; with config.strict also on answers that do not match their text.
SquadWindows load_windows(const std::filesystem::path& path, const data::WordPieceTokenizer& tokenizer,
                          const data::TokenizerOptions& switches, const SquadConfig& config,
                          std::optional<std::size_t> limit, bool training, const Notice& notice);
/// The same for questions in memory.
SquadWindows cut_windows(data::SquadDataset dataset, const data::WordPieceTokenizer& tokenizer,
                         const SquadConfig& config, bool training);

/// Makes batches out of windows; keeps the host memory it packs them in.
class WindowBatcher {
 public:
  explicit WindowBatcher(const SquadWindows& windows) : windows_(windows) {}

  /// Packs these windows; ids are their places in the global batch.
  void assemble(std::span<const std::size_t> windows, std::span<const std::uint32_t> ids, Batch& batch) const;

 private:
  void append(const data::Feature& feature) const;

  const SquadWindows& windows_;
  mutable std::vector<std::size_t> lengths_;
  mutable std::vector<std::int32_t> tokens_, segments_, positions_, starts_, ends_;
};

}  // namespace mylos::tasks
