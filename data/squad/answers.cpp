#include "data/squad/answers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>

#include "core/base/error.hpp"

namespace mylos::data {
namespace {

/// A candidate before its text is extracted; most are discarded.
struct Span {
  CodePointRange range;
  float score;
  float start_logit;
  float end_logit;
};

/// Returns a sort key for any float: NaN is last.
float order_key(float value) { return std::isnan(value) ? -std::numeric_limits<float>::infinity() : value; }

/// Returns the positions of the `count` largest logits, largest first, with ties to the later position.
std::vector<std::uint32_t> largest(std::span<const float> logits, std::size_t count) {
  std::vector<std::uint32_t> positions(logits.size());
  std::iota(positions.begin(), positions.end(), 0U);
  const auto kept = positions.begin() + static_cast<std::ptrdiff_t>(std::min(count, positions.size()));
  std::partial_sort(positions.begin(), kept, positions.end(), [&](std::uint32_t a, std::uint32_t b) {
    const float left = order_key(logits[a]);
    const float right = order_key(logits[b]);
    return left != right ? left > right : a > b;
  });
  positions.erase(kept, positions.end());
  return positions;
}

void check(const WindowLogits& window) {
  if (window.start.size() != window.end.size() ||
      window.start.size() < window.context_position + window.offsets.size() || window.context_position == 0) {
    require(false, fmt::format("a window has {} start and {} end logits for {} context tokens from position {}",
                               window.start.size(), window.end.size(), window.offsets.size(), window.context_position));
  }
}

/// Adds the valid pairs of high-scoring starts and ends within the window's context, in run_qa's order.
void add_spans(const WindowLogits& window, const AnswerOptions& options, std::vector<Span>& spans) {
  const std::size_t first = window.context_position;
  const std::size_t last = first + window.offsets.size();
  const auto in_context = [&](std::size_t position) { return position >= first && position < last; };
  const auto ends = largest(window.end, options.n_best);
  for (const std::uint32_t start : largest(window.start, options.n_best)) {
    if (!in_context(start)) continue;
    for (const std::uint32_t end : ends) {
      if (!in_context(end) || end < start || end - start + 1 > options.max_answer_length) continue;
      const CodePointRange range{window.offsets[start - first].begin, window.offsets[end - first].end};
      spans.push_back({range, window.start[start] + window.end[end], window.start[start], window.end[end]});
    }
  }
}

/// Returns the null answer of a question: the lowest score of [CLS] over its windows.
Span null_span(std::span<const WindowLogits> windows) {
  Span null{{}, 0, 0, 0};
  bool is_first = true;
  for (const WindowLogits& window : windows) {
    const float score = window.start[0] + window.end[0];
    if (is_first || null.score > score) null = {{}, score, window.start[0], window.end[0]};
    is_first = false;
  }
  return null;
}

/// Returns the best of `spans`, and always the null answer.
std::vector<Span> keep_best(std::vector<Span> spans, const AnswerOptions& options, const Span* null) {
  if (null != nullptr) spans.push_back(*null);
  std::stable_sort(spans.begin(), spans.end(),
                   [](const Span& a, const Span& b) { return order_key(a.score) > order_key(b.score); });
  if (spans.size() > options.n_best) spans.resize(options.n_best);
  const auto is_null = [](const Span& span) { return span.range == CodePointRange{}; };
  if (null != nullptr && std::none_of(spans.begin(), spans.end(), is_null)) spans.push_back(*null);
  return spans;
}

std::vector<AnswerCandidate> cut_texts(std::string_view context, const std::vector<Span>& spans) {
  std::vector<AnswerCandidate> candidates;
  for (const Span& span : spans) {
    const std::string_view text = slice_code_points(context, span.range);
    candidates.push_back({std::string(text), span.range, span.start_logit, span.end_logit, 0});
  }
  // run_qa's placeholder if no span qualifies, so that there is always a prediction.
  if (candidates.empty() || (candidates.size() == 1 && candidates[0].text.empty())) {
    candidates.insert(candidates.begin(), {"empty", {}, 0, 0, 0});
  }
  return candidates;
}

void set_probabilities(std::vector<AnswerCandidate>& candidates) {
  const auto score = [](const AnswerCandidate& candidate) { return candidate.start_logit + candidate.end_logit; };
  float highest = -std::numeric_limits<float>::infinity();
  for (const AnswerCandidate& candidate : candidates) highest = std::max(highest, score(candidate));
  float sum = 0;
  for (AnswerCandidate& candidate : candidates) sum += candidate.probability = std::exp(score(candidate) - highest);
  for (AnswerCandidate& candidate : candidates) candidate.probability /= sum;
}

void choose(Answer& answer, const AnswerCandidate& candidate) {
  answer.text = candidate.text;
  answer.range = candidate.range;
  answer.probability = candidate.probability;
}

}  // namespace

Answer find_answer(std::string_view context, std::span<const WindowLogits> windows, const AnswerOptions& options) {
  require(!windows.empty(), "a question without windows has no answer");
  const bool may_be_null = options.version == SquadVersion::v2_0;
  std::vector<Span> spans;
  for (const WindowLogits& window : windows) {
    check(window);
    add_spans(window, options, spans);
  }
  const Span null = null_span(windows);
  Answer answer;
  answer.n_best = cut_texts(context, keep_best(std::move(spans), options, may_be_null ? &null : nullptr));
  set_probabilities(answer.n_best);
  const auto has_text = [](const AnswerCandidate& candidate) { return !candidate.text.empty(); };
  const auto best = std::find_if(answer.n_best.begin(), answer.n_best.end(), has_text);
  choose(answer, best == answer.n_best.end() || !may_be_null ? answer.n_best.front() : *best);
  if (may_be_null && best != answer.n_best.end()) {
    answer.null_odds = null.score - best->start_logit - best->end_logit;
    const auto is_null = [](const AnswerCandidate& candidate) { return candidate.text.empty(); };
    if (*answer.null_odds > options.null_threshold) {
      choose(answer, *std::find_if(answer.n_best.begin(), answer.n_best.end(), is_null));
    }
  }
  return answer;
}

}  // namespace mylos::data
