#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "data/squad/answers.hpp"
#include "data/tokenizer/vocabulary.hpp"

/// The answer that transformers' question-answering pipeline gives: another way from logits to an answer than run_qa's
/// (answers.hpp). Scores are probabilities within a window, answers are whole words, equal texts add their scores.
namespace mylos::data {

/// One window's logits and the ids of its context tokens, which say where words begin.
struct PipelineWindow {
  WindowLogits logits;
  std::span<const TokenId> ids;  ///< (logits.offsets.size())
};

struct PipelineAnswer {
  std::string text;      ///< empty: the context has no answer
  CodePointRange range;  ///< of the context
  float score = 0;       ///< in [0, 1], higher where windows agree; 0 where there is nothing to answer from
};

/// The pipeline's best answer (align_to_words true) of at most `max_answer_length` tokens before it is extended to
/// whole words. Ties go to the span that begins, then ends, first. With `may_be_none` (handle_impossible_answer true)
/// the answer is none, with its score, where the lowest score of [CLS] over the windows is above every answer's.
PipelineAnswer find_pipeline_answer(std::string_view context, std::span<const PipelineWindow> windows,
                                    const Vocabulary& vocabulary, std::size_t max_answer_length,
                                    bool may_be_none = false);

}  // namespace mylos::data
