#include "tasks/question_answering/squad_evaluation.hpp"

#include "core/base/error.hpp"
#include "core/base/files/files.hpp"
#include "core/base/text/printable.hpp"
#include "data/squad/answer_files.hpp"
#include "data/squad/squad_metrics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

namespace mylos::tasks {
namespace {

data::AnswerOptions answer_options(const SquadConfig& config, data::SquadVersion version) {
  return {.version = version,
          .n_best = config.n_best,
          .max_answer_length = config.max_answer_length,
          .null_threshold = static_cast<float>(config.null_threshold)};
}

void write_nbest(const std::filesystem::path& path, std::span<const data::SquadQuestion> questions,
                 std::span<const data::Answer> answers) {
  StagedFile file(path);
  data::nbest_json(questions, answers, [&](std::string_view piece) { file.write(piece); });
  file.commit();
}

/// Returns the result of the official script; for v1.1 it also has `exact` beside `exact_match`, so that one name
/// serves both versions.
data::SquadScore score_by_script(const data::SquadDataset& dataset, const data::Predictions& predictions) {
  if (dataset.version == data::SquadVersion::v2_0) return data::score_v2(dataset, predictions);
  data::SquadScore score = data::score_v1(dataset, predictions);
  score.values["exact"] = score.values["exact_match"];
  return score;
}

bool has_label(const data::Feature& feature) { return feature.start >= 0 && feature.end >= 0; }

/// Fails on questions without an answer in v1.1, whose rules cannot score them, before anything is computed.
void check_version(const data::SquadDataset& dataset) {
  if (dataset.version == data::SquadVersion::v2_0) return;
  for (const data::SquadQuestion& question : dataset.questions) {
    if (!question.has_answers_key || !question.answers.empty()) continue;
    fail(fmt::format("question {} has no answer, which SQuAD 1.1 does not allow; use --squad 2.0",
                     printable(question.id)));
  }
}

/// Writes `text`, or removes an earlier evaluation's file if it is empty.
void write_or_remove(const std::filesystem::path& path, const std::string& text) {
  if (!text.empty()) return write_text(path, text);
  std::filesystem::remove(path);
}

}  // namespace

SquadEvaluation::SquadEvaluation(SquadWindows windows, const SquadConfig& config)
    : windows_(std::move(windows)), config_(config), batcher_(windows_), slices_(windows_.lengths()) {
  check_version(windows_.dataset);
  logit_starts_.push_back(0);
  for (std::size_t window = 0; window < windows_.count(); ++window) {
    logit_starts_.push_back(logit_starts_.back() + windows_.length(window));
  }
  start_logits_.resize(logit_starts_.back());
  end_logits_.resize(logit_starts_.back());
}

BatchShape SquadEvaluation::bound_of_batches(std::size_t max_length) {
  constexpr std::size_t shortest = 3;  // [CLS] and two [SEP]
  const std::size_t rows = std::max(EvaluationSlices::most_rows, max_length);
  return {.samples = rows / shortest, .rows = rows, .longest = max_length};
}

std::size_t SquadEvaluation::labelled_windows() const {
  return static_cast<std::size_t>(std::ranges::count_if(windows_.features.features, has_label));
}

void SquadEvaluation::assemble(std::size_t index, Batch& batch) const {
  const std::vector<std::size_t> windows = slices_.samples(index);
  batcher_.assemble(windows, std::vector<std::uint32_t>(windows.begin(), windows.end()), batch);
}

void SquadEvaluation::take(std::size_t index, std::span<const float> logits, std::span<const float> losses) {
  if (index == 0) loss_sum_ = 0.0;
  keep(index, logits);
  loss_sum_ += std::accumulate(losses.begin(), losses.end(), 0.0);
}

std::size_t SquadEvaluation::kept_bytes() const {
  // A question has its texts in the answer files and the score's tables; a candidate its text and its heap overhead.
  constexpr std::size_t of_question = 1536, of_candidate = sizeof(data::AnswerCandidate) + 48;
  return windows_.dataset.questions.size() * (of_question + config_.n_best * of_candidate);
}

std::span<const train::MetricKind> SquadEvaluation::kinds() const {
  static const std::array<train::MetricKind, 3> kinds = {
      {{"validation_loss", "Validation loss", "", false}, {"exact", "Exact match", "%"}, {"f1", "F1", "%"}}};
  return kinds;
}

train::Metrics SquadEvaluation::score() {
  find_answers();
  return score_answers();
}

void SquadEvaluation::keep(std::size_t index, std::span<const float> logits) {
  const std::size_t begin = logit_starts_[slices_.begin(index)], rows = logit_starts_[slices_.end(index)] - begin;
  for (std::size_t row = 0; row < rows; ++row) {
    start_logits_[begin + row] = logits[2 * row];
    end_logits_[begin + row] = logits[2 * row + 1];
  }
}

data::WindowLogits SquadEvaluation::window_logits(std::size_t window) const {
  const data::Feature& feature = windows_.features.features[window];
  const std::size_t begin = logit_starts_[window], length = logit_starts_[window + 1] - begin;
  return {.start = std::span(start_logits_).subspan(begin, length),
          .end = std::span(end_logits_).subspan(begin, length),
          .context_position = windows_.features.context_position(feature),
          .offsets = windows_.features.context_offsets(feature)};
}

void SquadEvaluation::find_answers() {
  const data::SquadDataset& dataset = windows_.dataset;
  const data::AnswerOptions options = answer_options(config_, dataset.version);
  const auto& features = windows_.features.features;
  answers_.clear();
  std::vector<data::WindowLogits> logits;
  for (std::size_t question = 0, window = 0; question < dataset.questions.size(); ++question) {
    logits.clear();
    for (; window < features.size() && features[window].question == question; ++window) {
      logits.push_back(window_logits(window));
    }
    answers_.push_back(data::find_answer(dataset.contexts[dataset.questions[question].context], logits, options));
  }
}

train::Metrics SquadEvaluation::score_answers() {
  const data::SquadDataset& dataset = windows_.dataset;
  const std::size_t labelled = labelled_windows();
  train::Metrics metrics;
  score_.clear();
  if (labelled > 0) metrics.emplace_back("validation_loss", loss_sum_ / static_cast<double>(labelled));
  if (std::ranges::none_of(dataset.questions, &data::SquadQuestion::has_answers_key)) return metrics;
  data::Predictions predictions;
  for (std::size_t question = 0; question < dataset.questions.size(); ++question) {
    predictions[dataset.questions[question].id] = answers_[question].text;
  }
  const data::SquadScore score = score_by_script(dataset, predictions);
  for (const char* name : {"exact", "f1"}) metrics.emplace_back(name, score.values.at(name).get<double>());
  score_ = score.values.dump(2) + "\n";
  return metrics;
}

void SquadEvaluation::write(const std::filesystem::path& directory) const {
  const auto& questions = windows_.dataset.questions;
  write_text(directory / "predictions.json", data::predictions_json(questions, answers_));
  write_nbest(directory / "nbest_predictions.json", questions, answers_);
  const bool has_null_odds = windows_.dataset.version == data::SquadVersion::v2_0;
  write_or_remove(directory / "null_odds.json", has_null_odds ? data::null_odds_json(questions, answers_) : "");
  write_or_remove(directory / "results.json", score_);
}

}  // namespace mylos::tasks
