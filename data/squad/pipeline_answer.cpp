#include "data/squad/pipeline_answer.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/text/python_text.hpp"

namespace mylos::data {
namespace {

/// Spans kept per window: the pipeline's top_k * 2 + 10 for one answer.
constexpr std::size_t spans_kept = 12;

struct WordSpan {
  float score;
  std::size_t first;  // context tokens of the window
  std::size_t last;
};

/// exp(logit) / sum over [CLS] and the context, without the question.
struct Probabilities {
  float none;                  ///< for [CLS]
  std::vector<float> context;  ///< for the context tokens
};

Probabilities probabilities(std::span<const float> logits, const WindowLogits& window) {
  const auto context = logits.subspan(window.context_position, window.offsets.size());
  const float none = logits.front();
  float largest = none;
  for (const float logit : context) largest = std::max(largest, logit);
  Probabilities result{std::exp(none - largest), {}};
  double sum = result.none;
  for (const float logit : context) {
    result.context.push_back(std::exp(logit - largest));
    sum += result.context.back();
  }
  result.none = static_cast<float>(result.none / sum);
  for (float& value : result.context) value = static_cast<float>(value / sum);
  return result;
}

/// Returns the lowest score of [CLS] over the windows, because windows without the answer score it highly.
float none_score(std::span<const PipelineWindow> windows) {
  float lowest = std::numeric_limits<float>::infinity();
  for (const PipelineWindow& window : windows) {
    const float start = probabilities(window.logits.start, window.logits).none;
    const float end = probabilities(window.logits.end, window.logits).none;
    lowest = std::min(lowest, start * end);
  }
  return lowest;
}

/// Returns the most likely spans of a window, best first.
std::vector<WordSpan> best_spans(const WindowLogits& window, std::size_t max_answer_length) {
  std::vector<WordSpan> spans;
  if (window.offsets.empty()) return spans;
  const auto start = probabilities(window.start, window).context;
  const auto end = probabilities(window.end, window).context;
  for (std::size_t first = 0; first < start.size(); ++first) {
    const auto stop = std::min(end.size(), first + max_answer_length);
    for (std::size_t last = first; last < stop; ++last) spans.push_back({start[first] * end[last], first, last});
  }
  const auto kept = spans.begin() + static_cast<std::ptrdiff_t>(std::min(spans.size(), spans_kept));
  std::partial_sort(spans.begin(), kept, spans.end(), [](const WordSpan& a, const WordSpan& b) {
    return std::pair(b.score, std::pair(a.first, a.last)) < std::pair(a.score, std::pair(b.first, b.last));
  });
  spans.erase(kept, spans.end());
  return spans;
}

/// Extends the span to whole words as far as the window contains them, and returns its code points.
CodePointRange extend_to_words(const PipelineWindow& window, WordSpan span, const Tokenizer& tokenizer) {
  const auto continues = [&](std::size_t token) {
    return token < window.ids.size() && tokenizer.continues_word(window.ids[token]);
  };
  while (span.first > 0 && continues(span.first)) --span.first;
  while (continues(span.last + 1)) ++span.last;
  return {window.logits.offsets[span.first].begin, window.logits.offsets[span.last].end};
}

}  // namespace

PipelineAnswer find_pipeline_answer(std::string_view context, std::span<const PipelineWindow> windows,
                                    const Tokenizer& tokenizer, std::size_t max_answer_length, bool may_be_none) {
  require(max_answer_length > 0, "an answer has at least one token");
  std::vector<PipelineAnswer> answers;
  std::vector<std::u32string> keys;  // lower-case texts, which the pipeline compares
  for (const auto& window : windows) {
    for (const auto& span : best_spans(window.logits, max_answer_length)) {
      const auto range = extend_to_words(window, span, tokenizer);
      const auto text = slice_code_points(context, range);
      auto key = python_lower(decode_utf8(text));
      const auto known = std::ranges::find(keys, key);
      if (known != keys.end()) {
        answers[static_cast<std::size_t>(known - keys.begin())].score += span.score;
      } else {
        answers.push_back({std::string(text), range, span.score});
        keys.push_back(std::move(key));
      }
    }
  }
  if (may_be_none && !windows.empty()) answers.push_back({{}, {}, none_score(windows)});
  if (answers.empty()) return {};
  return *std::ranges::max_element(answers, {}, &PipelineAnswer::score);
}

}  // namespace mylos::data
