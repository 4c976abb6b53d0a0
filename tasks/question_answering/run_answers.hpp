#pragma once

#include "data/squad/answer_files.hpp"
#include "data/squad/squad.hpp"
#include "train/monitor/run_record.hpp"

#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

/// What runs answered, and how that compares with what they should have and with one another.
namespace mylos::tasks {

using Answers = std::unordered_map<std::string, data::ShortAnswer>;

/// The questions that a run was evaluated on.
struct Questions {
  using Question = data::SquadQuestion;
  using Dataset = data::SquadDataset;

  data::SquadDataset dataset;
  std::unordered_map<std::string, std::size_t> locations;  ///< of ids in dataset.questions
  std::string problem;                                     ///< why they are not there; empty where they are

  const data::SquadQuestion* find(const std::string& id) const;
  /// F1 of an answer, 0 to 1; nothing where nobody knows the right one.
  std::optional<double> f1(const std::string& id, const std::string& answer) const;
};

/// Those of the file that run.json names, as far as it was used. Never throws: what is wrong is the `problem`.
Questions read_questions(const train::RunRecord& run);

/// Answers after `step`. Errors: std::runtime_error naming the file.
struct EvaluationAnswers {
  std::size_t step = 0;
  Answers answers;
};
EvaluationAnswers read_evaluation_answers(const std::filesystem::path& file, std::size_t step);

/// What the run answers in the end: of the best evaluation that was kept, or predictions.json, which says no
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

/// Answers with other texts: the largest losses of F1 first, then the largest gains, those without either last; ids
/// break ties.
std::vector<AnswerChange> changed_answers(const Answers& before, const Answers& after, const Questions& questions);

/// Questions that both answered.
std::size_t common_questions(const Answers& before, const Answers& after);

struct WrongAnswer {
  std::string id;
  data::ShortAnswer answer;
  double f1 = 0.0;
};

/// Answers that are not exactly right, the lowest F1 first, of the same F1 the most probable first.
std::vector<WrongAnswer> worst_answers(const Answers& answers, const Questions& questions);

}  // namespace mylos::tasks
