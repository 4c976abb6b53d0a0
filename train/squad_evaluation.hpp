#pragma once

#include "data/answers.hpp"
#include "train/squad_windows.hpp"
#include "train/task.hpp"

#include <filesystem>
#include <vector>

/// Predicts the answers of a data set, and scores those that have gold answers.
namespace mylos::train {

class SquadEvaluation {
 public:
  /// Errors: std::runtime_error where the rules of the data's version cannot score it.
  SquadEvaluation(SquadWindows windows, const SquadConfig& config);
  SquadEvaluation(const SquadEvaluation&) = delete;  // batches refer to the windows
  SquadEvaluation& operator=(const SquadEvaluation&) = delete;

  const SquadWindows& windows() const { return windows_; }
  BatchShape largest_batch() const { return largest_; }
  /// Windows whose question has an answer to compare with: what validation_loss is the mean over.
  std::size_t labelled_windows() const;
  /// What no batch exceeds, whatever the questions, where windows have at most `max_length` tokens.
  static BatchShape largest_batch(std::size_t max_length);

  /// Answers every question. Returns validation_loss (first answers, labelled as in training), exact and f1 where
  /// questions have gold answers; nothing is scored where none has.
  Metrics run(Predictor& predictor);

  /// The last run's answers, one for each question in order.
  const std::vector<data::Answer>& answers() const { return answers_; }
  /// The last run's logits of a window; valid until the next run.
  data::WindowLogits window_logits(std::size_t window) const;
  /// Seconds that the last run spent on its predictions: not on choosing and scoring answers.
  double prediction_seconds() const { return prediction_seconds_; }
  /// The last run's score as the official script prints it; empty where nothing was scored.
  const std::string& score() const { return score_; }
  /// Writes the last run's predictions.json, nbest_predictions.json, null_odds.json (v2.0) and results.json into
  /// `directory`, each whole or not at all.
  void write(const std::filesystem::path& directory) const;

 private:
  /// Windows [begin, end) predicted at once: as many as fit a fixed count of tokens.
  struct Slice {
    std::size_t begin = 0;
    std::size_t end = 0;
  };

  double predict_all(Predictor& predictor);
  void keep(const Slice& part, std::span<const float> logits);
  void find_answers();
  Metrics score_answers(double loss_sum);

  SquadWindows windows_;
  SquadConfig config_;
  WindowBatcher batcher_;
  std::vector<Slice> slices_;
  BatchShape largest_;
  std::vector<std::size_t> logit_starts_;         ///< (windows + 1) tokens before each window
  std::vector<float> start_logits_, end_logits_;  ///< of all windows
  std::vector<data::Answer> answers_;
  std::string score_;
  double prediction_seconds_ = 0.0;
};

}  // namespace mylos::train
