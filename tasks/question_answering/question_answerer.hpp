#pragma once

#include "data/squad/pipeline_answer.hpp"
#include "tasks/question_answering/squad_task.hpp"
#include "train/engine/evaluator.hpp"

#include <string>
#include <vector>

/// A model that answers questions about texts, loaded once for any number of them.
namespace mylos::tasks {

class QuestionAnswerer {
 public:
  /// Loads the model of `run`, whose windows and longest answer hold. Errors: those of SquadTask and Evaluator.
  QuestionAnswerer(const RunConfig& run, const Notice& notice);

  /// One answer for each question, as transformers' question-answering pipeline gives it; where the settings say
  /// SQuAD 2.0 it may be none (handle_impossible_answer). Errors: std::runtime_error where a text is not UTF-8 or a
  /// question leaves no room for the context.
  std::vector<data::PipelineAnswer> answer(const std::string& context, const std::vector<std::string>& questions);

 private:
  SquadConfig config_;
  SquadTask task_;
  train::Evaluator evaluator_;
};

}  // namespace mylos::tasks
