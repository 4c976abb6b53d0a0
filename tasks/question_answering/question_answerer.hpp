#pragma once

#include "data/squad/pipeline_answer.hpp"
#include "tasks/question_answering/squad_task.hpp"
#include "train/engine/evaluator.hpp"

#include <string>
#include <vector>

/// Answers questions about texts with a model that is loaded once.
namespace mylos::tasks {

class QuestionAnswerer {
 public:
  /// Loads the model of `run` and uses the run's settings for windows and answer length. Errors: those of SquadTask and
  /// Evaluator.
  QuestionAnswerer(const RunConfig& run, const Notice& notice);

  /// Returns one answer per question, as transformers' question-answering pipeline does. With the rules of SQuAD 2.0
  /// the answer may be empty (handle_impossible_answer). Errors: std::runtime_error if a text is not UTF-8 or a
  /// question leaves no room for the context.
  std::vector<data::PipelineAnswer> answer(const std::string& context, const std::vector<std::string>& questions);

 private:
  SquadConfig config_;
  SquadTask task_;
  train::Evaluator evaluator_;
};

}  // namespace mylos::tasks
