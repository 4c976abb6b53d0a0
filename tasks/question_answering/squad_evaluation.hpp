#pragma once

#include "data/squad/answers.hpp"
#include "tasks/interface/evaluation_slices.hpp"
#include "tasks/question_answering/squad_windows.hpp"
#include "train/engine/task.hpp"

#include <filesystem>
#include <vector>

/// Predicts the answers of a data set, and scores those that have gold answers.
namespace mylos::tasks {

class SquadEvaluation final : public train::Evaluation {
 public:
  /// Errors: std::runtime_error where the rules of the data's version cannot score it.
  SquadEvaluation(SquadWindows windows, const SquadConfig& config);
  SquadEvaluation(const SquadEvaluation&) = delete;  // batches refer to the windows
  SquadEvaluation& operator=(const SquadEvaluation&) = delete;

  const SquadWindows& windows() const { return windows_; }
  /// Windows whose question has an answer to compare with: what validation_loss is the mean over.
  std::size_t labelled_windows() const;
  /// What no batch exceeds, whatever the questions, where windows have at most `max_length` tokens.
  static BatchShape bound_of_batches(std::size_t max_length);

  std::size_t batches() const override { return slices_.count(); }
  BatchShape largest_batch() const override { return slices_.largest(); }
  void assemble(std::size_t index, Batch& batch) const override;
  void take(std::size_t index, std::span<const float> logits, std::span<const float> losses) override;
  std::size_t kept_bytes() const override;
  /// Answers every question. Returns validation_loss (first answers, labelled as in training), exact and f1 where
  /// questions have gold answers; nothing is scored where none has.
  train::Metrics score() override;
  std::span<const train::MetricKind> kinds() const override;

  /// The last score's answers, one for each question in order.
  const std::vector<data::Answer>& answers() const { return answers_; }
  /// The logits of a window that was taken; valid until the next is.
  data::WindowLogits window_logits(std::size_t window) const;
  /// The last score as the official script prints it; empty where nothing was scored.
  const std::string& official_score() const { return score_; }
  /// Writes the last score's predictions.json, nbest_predictions.json, null_odds.json (v2.0) and results.json into
  /// `directory`, each whole or not at all.
  void write(const std::filesystem::path& directory) const;

 private:
  /// Keeps the logits of batch `index`.
  void keep(std::size_t index, std::span<const float> logits);
  void find_answers();
  train::Metrics score_answers();

  SquadWindows windows_;
  SquadConfig config_;
  WindowBatcher batcher_;
  EvaluationSlices slices_;
  std::vector<std::size_t> logit_starts_;         ///< (windows + 1) tokens before each window
  std::vector<float> start_logits_, end_logits_;  ///< of all windows
  std::vector<data::Answer> answers_;
  double loss_sum_ = 0.0;  ///< of the batches taken since the first
  std::string score_;
};

}  // namespace mylos::tasks
