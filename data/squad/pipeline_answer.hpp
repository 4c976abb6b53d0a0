#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "data/squad/answers.hpp"
#include "data/tokenizer/tokenizer.hpp"

/// The answer of transformers' question-answering pipeline, which is computed differently from run_qa's (answers.hpp):
/// scores are probabilities within a window, answers are whole words, and the scores of equal texts are added.
namespace mylos::data {

/// The logits of one window and the ids of its context tokens, which tell where words begin.
struct PipelineWindow {
  WindowLogits logits;
  std::span<const TokenId> ids;  ///< (logits.offsets.size())
};

struct PipelineAnswer {
  std::string text;      ///< empty: the context has no answer
  CodePointRange range;  ///< in the context
  float score = 0;       ///< in [0, 1], higher if windows agree; 0 if there is no context to answer from
};

/// Returns the pipeline's best answer (align_to_words true) of at most `max_answer_length` tokens before its extension
/// to whole words. Ties go to the span that begins first, then to the one that ends first. With `may_be_none`
/// (handle_impossible_answer true) the answer is empty, with its score, if the lowest [CLS] score over the windows
/// exceeds the score of every answer.
PipelineAnswer find_pipeline_answer(std::string_view context, std::span<const PipelineWindow> windows,
                                    const Tokenizer& tokenizer, std::size_t max_answer_length,
                                    bool may_be_none = false);

}  // namespace mylos::data
