#include "app/options/option_kinds.hpp"

/// Options of how answers are found and scored.
namespace mylos::app {

std::vector<Option> answer_options() {
  constexpr std::string_view answers = "Answers";
  constexpr unsigned scoring = train_command | eval_command;
  return {
      count_option(
          named("n-best", {"n-best-size"}, "N", answers, scoring,
                "best starts and ends of a window, and answers of a question, that are kept"),
          {1, 10'000}, [](auto& a) -> auto& { return a.run.squad.n_best; }),
      count_option(
          named("max-answer-length", {}, "N", answers, scoring | ask_command, "tokens of an answer at most"),
          {1, 65'536}, [](auto& a) -> auto& { return a.run.squad.max_answer_length; }),
      real_option(
          named("null-threshold", {"null-score-diff-threshold"}, "X", answers, scoring,
                "SQuAD 2.0: no answer where its score beats the best answer's by more than this, in logits"),
          {-1e6, 1e6}, [](auto& a) -> auto& { return a.run.squad.null_threshold; }),
      path_option(
          named("na-prob-file", {}, "FILE", answers, score_command,
                "JSON {question id: probability that it has no answer}; adds the best thresholds (SQuAD 2.0)"),
          [](auto& a) -> auto& { return a.no_answer_probabilities; }),
      real_option(
          named("na-prob-thresh", {}, "X", answers, score_command,
                "count a question as unanswered where its probability is above this (SQuAD 2.0)"),
          {-1e6, 1e6}, [](auto& a) -> auto& { return a.no_answer_threshold; }),
  };
}

}  // namespace mylos::app
