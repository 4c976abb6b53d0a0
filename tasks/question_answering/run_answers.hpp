#pragma once

#include "data/squad/answer_files.hpp"
#include "data/squad/squad.hpp"
#include "train/monitor/run_record.hpp"

#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

/// Compares the answers of runs with the gold answers and with each other.
namespace mylos::tasks {

using Answers = std::unordered_map<std::string, data::ShortAnswer>;

/// The questions that a run was evaluated on.
struct Questions {
  data::SquadDataset dataset;
  std::unordered_map<std::string, std::size_t> locations;  ///< index in dataset.questions by id
  std::string problem;                                     ///< reason why there are no questions, or empty

  const data::SquadQuestion* find(const std::string& id) const;
  /// Returns the F1 of an answer, 0 to 1; nullopt if the question is unknown or has no gold answers.
  std::optional<double> f1(const std::string& id, const std::string& answer) const;
};

/// Reads the questions of the file that run.json names, as far as they were used. Never throws: errors are stored in
/// `problem`.
Questions read_questions(const train::RunRecord& run);

/// Returns whether the runs were evaluated on the same questions, by their settings.
bool have_same_questions(const train::RunRecord& one, const train::RunRecord& other);

/// The final answers of a run: those of the best evaluation that was kept, or predictions.json, which has no
/// probabilities.
struct FinalAnswers {
  std::string origin;  ///< "step 500, the best evaluation"
  Answers answers;
  bool has_probabilities = false;
};
std::optional<FinalAnswers> read_final_answers(const train::RunRecord& run);

struct AnswerChange {
  std::string id;
  data::ShortAnswer before, after;
  std::optional<double> f1_before, f1_after;
  double gain() const { return f1_after.value_or(0.0) - f1_before.value_or(0.0); }
};

/// Returns the answers whose texts differ: the largest losses of F1 first, then the largest gains, then those without
/// F1. Ties are ordered by id.
std::vector<AnswerChange> changed_answers(const Answers& before, const Answers& after, const Questions& questions);

/// Returns the number of questions that both answered.
std::size_t common_questions(const Answers& before, const Answers& after);

struct WrongAnswer {
  std::string id;
  data::ShortAnswer answer;
  double f1 = 0.0;
};

/// Returns the answers that are not exactly right, by ascending F1, and by descending probability for equal F1.
std::vector<WrongAnswer> worst_answers(const Answers& answers, const Questions& questions);

}  // namespace mylos::tasks
