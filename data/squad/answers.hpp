#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/unicode.hpp"
#include "data/squad/squad.hpp"

/// From the logits of a question's windows to its answer: run_qa's postprocess_qa_predictions.
namespace mylos::data {

struct AnswerOptions {
  SquadVersion version = SquadVersion::v1_1;
  std::size_t n_best = 20;
  std::size_t max_answer_length = 30;  ///< tokens
  float null_threshold = 0;            ///< v2.0: no answer where the null score is this much above the best answer's
};

/// One window's logits, one a position, and where its context tokens stand.
struct WindowLogits {
  std::span<const float> start;             ///< (length)
  std::span<const float> end;               ///< (length)
  std::size_t context_position = 0;         ///< of the first context token
  std::span<const CodePointRange> offsets;  ///< of the context tokens, in the context
};

struct AnswerCandidate {
  std::string text;
  CodePointRange range;  ///< of the context; empty for the null answer
  float start_logit = 0;
  float end_logit = 0;
  float probability = 0;  ///< softmax over the candidates that were kept
};

struct Answer {
  std::string text;      ///< empty: no answer (v2.0)
  CodePointRange range;  ///< of the context
  float probability = 0;
  std::vector<AnswerCandidate> n_best;  ///< best score first, at most n_best, and the null answer in v2.0
  std::optional<float> null_odds;       ///< v2.0: null score minus the best answer's
};

/// The answer to one question. Ties between logits go to the later position (as a stable ascending sort read from its
/// end gives; numpy's own order of ties is not defined), ties between scores to the candidate found first.
Answer find_answer(std::string_view context, std::span<const WindowLogits> windows, const AnswerOptions& options);

}  // namespace mylos::data
