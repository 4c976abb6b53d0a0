#include "app/option_kinds.hpp"

/// Options of how answers are found and scored.
namespace mylos::app {

std::vector<Option> answer_options() {
  constexpr std::string_view answers = "Answers";
  constexpr unsigned answering = train_command | eval_command | ask_command;
  return {
      count_option(
          {"n-best",
           {"n-best-size"},
           "N",
           answers,
           answering,
           "best starts and ends of a window, and answers of a question, that are kept"},
          {1, 10'000}, [](auto& a) -> auto& { return a.run.squad.n_best; }),
      count_option(
          {"max-answer-length", {}, "N", answers, answering, "tokens of an answer at most"}, {1, 65'536},
          [](auto& a) -> auto& { return a.run.squad.max_answer_length; }),
      real_option(
          {"null-threshold",
           {"null-score-diff-threshold"},
           "X",
           answers,
           answering,
           "SQuAD 2.0: no answer where its score beats the best answer's by more than this, in logits"},
          {-1e6, 1e6}, [](auto& a) -> auto& { return a.run.squad.null_threshold; }),
      path_option(
          {"na-prob-file",
           {},
           "FILE",
           answers,
           score_command,
           "JSON {question id: probability that it has no answer}; adds the best thresholds (SQuAD 2.0)"},
          [](auto& a) -> auto& { return a.no_answer_probabilities; }),
      real_option(
          {"na-prob-thresh",
           {},
           "X",
           answers,
           score_command,
           "count a question as unanswered where its probability is above this (SQuAD 2.0)"},
          {-1e6, 1e6}, [](auto& a) -> auto& { return a.no_answer_threshold; }),
  };
}

}  // namespace mylos::app
