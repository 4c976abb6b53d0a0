// JSON and SQuAD, and everything computed from an accepted file: windows, labels, answers and scores.

#include <limits>
#include <random>
#include <stdexcept>
#include <vector>

#include "core/base/files/json.hpp"
#include "data/squad/answer_files.hpp"
#include "data/squad/answers.hpp"
#include "data/squad/features.hpp"
#include "data/squad/squad_metrics.hpp"
#include "tests/fuzz/inputs.hpp"
#include "tests/fuzz/small_vocabulary.hpp"

namespace {

using namespace mylos::data;
using mylos::tests::expect;

constexpr std::size_t longest = 24, stride = 4;

void check_windows(const SquadDataset& dataset, const FeatureSet& set, bool training) {
  for (const Feature& window : set.features) {
    const std::size_t context = dataset.questions[window.question].context;
    const auto length = static_cast<std::int64_t>(set.length(window));
    expect(set.length(window) <= longest, "a window has no more tokens than it may");
    expect(window.context_begin + window.context_count <= set.contexts.count(context), "a window lies in its context");
    expect(window.start >= (training ? 0 : -1) && window.start < length, "a start lies in its window");
    expect(window.end >= (training ? 0 : -1) && window.end < length, "an end lies in its window");
    expect(window.start <= window.end + 1, "no more than run_qa's one token is a start behind its end");
    std::vector<TokenId> ids;
    set.append_input_ids(window, ids);
    expect(ids.size() == set.length(window), "as many ids as a window is long");
  }
}

/// Returns small integers with many ties, and values that a diverged model would give.
float made_up_logit(std::mt19937& random) {
  const std::uint32_t drawn = random();
  switch (drawn % 64) {
    case 0:
      return std::numeric_limits<float>::quiet_NaN();
    case 1:
      return std::numeric_limits<float>::infinity();
    case 2:
      return -std::numeric_limits<float>::infinity();
    default:
      return static_cast<float>(drawn / 64 % 7) - 3.0f;
  }
}

std::vector<Answer> find_answers(const SquadDataset& dataset, const FeatureSet& set) {
  std::vector<float> logits(2 * longest * (set.features.size() + 1));
  std::mt19937 random;  // has the same seed for each input
  for (float& logit : logits) logit = made_up_logit(random);
  const AnswerOptions options{.version = dataset.version, .n_best = 5, .max_answer_length = 6};
  std::vector<Answer> answers;
  for (std::size_t question = 0, i = 0; question < dataset.questions.size(); ++question) {
    std::vector<WindowLogits> windows;
    for (; i < set.features.size() && set.features[i].question == question; ++i) {
      const Feature& window = set.features[i];
      const auto all = std::span<const float>(logits).subspan(2 * longest * i, 2 * longest);
      windows.push_back({all.first(set.length(window)), all.subspan(longest, set.length(window)),
                         set.context_position(window), set.context_offsets(window)});
    }
    const std::string& context = dataset.contexts[dataset.questions[question].context];
    answers.push_back(find_answer(context, windows, options));
    const Answer& answer = answers.back();
    expect(!answer.n_best.empty() && answer.n_best.size() <= options.n_best + 2, "as many candidates as are kept");
    const bool is_of_context = context.find(answer.text) != std::string::npos;
    expect(is_of_context || answer.text == "empty", "an answer is a part of its context, or run_qa's stand-in");
  }
  return answers;
}

void write_and_score(const SquadDataset& dataset, const std::vector<Answer>& answers) {
  const Predictions predictions = parse_predictions(predictions_json(dataset.questions, answers), "written");
  expect(predictions.size() == dataset.questions.size(), "a prediction for each question");
  for (std::size_t i = 0; i < answers.size(); ++i) {
    expect(predictions.at(dataset.questions[i].id) == answers[i].text, "predictions are read as they were written");
  }
  nbest_json(dataset.questions, answers, [](std::string_view) {});
  null_odds_json(dataset.questions, answers);
  short_answers_json(dataset.questions, answers);
  const auto score =
      dataset.version == SquadVersion::v2_0 ? score_v2(dataset, predictions) : score_v1(dataset, predictions);
  expect(score.values.at("f1").get<double>() <= 100.0, "no score is above 100");
}

void check(const SquadDataset& dataset) {
  static const auto tokenizer = mylos::tests::small_tokenizer(true);
  try {
    check_windows(dataset,
                  build_features(dataset, tokenizer, {.max_length = longest, .doc_stride = stride, .training = true}),
                  true);
  } catch (const std::runtime_error&) {  // training has stricter requirements than prediction
  }
  const FeatureSet set = build_features(dataset, tokenizer, {.max_length = longest, .doc_stride = stride});
  check_windows(dataset, set, false);
  write_and_score(dataset, find_answers(dataset, set));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  try {
    const SquadDataset dataset = parse_squad(mylos::tests::as_text(bytes, size), "input");
    for (const SquadQuestion& question : dataset.questions) {
      expect(question.context < dataset.contexts.size(), "a question's context exists");
    }
    find_misplaced_answers(dataset);
    check(dataset);
  } catch (const std::runtime_error&) {  // how bad input is rejected
  }
  return 0;
}
