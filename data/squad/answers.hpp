#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/text/unicode.hpp"
#include "data/squad/squad.hpp"

/// Finds the answer to a question from the logits of its windows, as run_qa's postprocess_qa_predictions does.
namespace mylos::data {

struct AnswerOptions {
  SquadVersion version = SquadVersion::v1_1;
  std::size_t n_best = 20;
  std::size_t max_answer_length = 30;  ///< tokens
  float null_threshold = 0;            ///< v2.0: margin by which the null score must exceed the best answer's for "no
                                       ///< answer"
};

/// The logits of one window, one per position, and the locations of its context tokens.
struct WindowLogits {
  std::span<const float> start;             ///< (length)
  std::span<const float> end;               ///< (length)
  std::size_t context_position = 0;         ///< position of the first context token
  std::span<const CodePointRange> offsets;  ///< location of each context token in the context
};

struct AnswerCandidate {
  std::string text;
  CodePointRange range;  ///< in the context; empty for the null answer
  float start_logit = 0;
  float end_logit = 0;
  float probability = 0;  ///< softmax over the kept candidates
};

struct Answer {
  std::string text;      ///< empty: no answer (v2.0)
  CodePointRange range;  ///< in the context
  float probability = 0;
  std::vector<AnswerCandidate> n_best;  ///< best score first, at most n_best, including the null answer in v2.0
  std::optional<float> null_odds;       ///< v2.0: null score minus the best answer's score
};

/// Returns the answer to one question. Ties between logits go to the later position, as in a stable ascending sort read
/// backwards (numpy does not define its order of ties). Ties between scores go to the candidate found first.
Answer find_answer(std::string_view context, std::span<const WindowLogits> windows, const AnswerOptions& options);

}  // namespace mylos::data
