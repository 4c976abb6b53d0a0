#pragma once

#include "data/squad/answers.hpp"
#include "tasks/interface/evaluation_slices.hpp"
#include "tasks/question_answering/squad_windows.hpp"
#include "train/engine/task.hpp"

#include <filesystem>
#include <vector>

/// Predicts the answers of a data set, and scores those with gold answers.
namespace mylos::tasks {

class SquadEvaluation final : public train::Evaluation {
 public:
  /// Errors: std::runtime_error if the rules of the data's version cannot score it.
  SquadEvaluation(SquadWindows windows, const SquadConfig& config);
  SquadEvaluation(const SquadEvaluation&) = delete;  // batches refer to the windows
  SquadEvaluation& operator=(const SquadEvaluation&) = delete;

  const SquadWindows& windows() const { return windows_; }
  /// Returns the number of windows with a gold answer, over which validation_loss is averaged.
  std::size_t labelled_windows() const;
  /// Returns a shape that no batch exceeds, for any questions, if windows have at most `max_length` tokens.
  static BatchShape bound_of_batches(std::size_t max_length);

  std::size_t batches() const override { return slices_.count(); }
  BatchShape largest_batch() const override { return slices_.largest(); }
  void assemble(std::size_t index, Batch& batch) const override;
  void take(std::size_t index, std::span<const float> logits, std::span<const float> losses) override;
  std::size_t kept_bytes() const override;
  /// Answers every question. Returns validation_loss (for first answers, labelled as in training), exact and f1 if some
  /// questions have gold answers; otherwise nothing is scored.
  train::Metrics score() override;
  std::span<const train::MetricKind> kinds() const override;

  /// Returns the last score's answers, one per question in order.
  const std::vector<data::Answer>& answers() const { return answers_; }
  /// Returns the logits of a window that was taken, valid until the next one is taken.
  data::WindowLogits window_logits(std::size_t window) const;
  /// Returns the last score as printed by the official script; empty if nothing was scored.
  const std::string& official_score() const { return score_; }
  /// Writes predictions.json, nbest_predictions.json, null_odds.json (v2.0) and results.json of the last score to
  /// `directory`, each completely or not at all.
  void write(const std::filesystem::path& directory) const;

 private:
  /// Stores the logits of batch `index`.
  void keep(std::size_t index, std::span<const float> logits);
  void find_answers();
  train::Metrics score_answers();

  SquadWindows windows_;
  SquadConfig config_;
  WindowBatcher batcher_;
  EvaluationSlices slices_;
  std::vector<std::size_t> logit_starts_;         ///< (windows + 1) tokens before each window
  std::vector<float> start_logits_, end_logits_;  ///< logits of all windows
  std::vector<data::Answer> answers_;
  double loss_sum_ = 0.0;  ///< sum over the batches taken since the first
  std::string score_;
};

}  // namespace mylos::tasks
