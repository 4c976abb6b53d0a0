#include "data/squad/feature_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/files/hdf5_file.hpp"
#include "core/base/setting_error.hpp"
#include "core/base/text/printable.hpp"

namespace mylos::data {
namespace {

[[noreturn]] void fail_difference(const std::filesystem::path& path, std::string_view prepared, std::string_view now) {
  fail(fmt::format(
      "{} was prepared with {}, this run has {}; prepare it again with `mylos prepare`, or run with the same",
      path.string(), prepared, now));
}

template <class Value>
void check_same(const std::filesystem::path& path, std::string_view what, const Value& prepared, const Value& now) {
  if (prepared != now) fail_difference(path, fmt::format("{} {}", what, prepared), fmt::format("{}", now));
}

/// Returns whether training uses the question: an answer is usable, or the question is known to have none.
bool is_usable(const SquadQuestion& question, const FeatureOptions& options) {
  return (question.answers.empty() && !options.answerable_only) ||
         std::ranges::any_of(question.answers, &SquadAnswer::aligned);
}

/// Counts the features whose answer starts at the last context token, by their labels.
std::size_t count_sep_labels(const FeatureSet& set, bool exact_labels) {
  return static_cast<std::size_t>(std::ranges::count_if(set.features, [&](const Feature& feature) {
    const auto last = set.context_position(feature) + feature.context_count - (exact_labels ? 1 : 0);
    return feature.start > 0 && static_cast<std::size_t>(feature.start) == last;
  }));
}

}  // namespace

PreparedFeatures prepare_features(SquadDataset dataset, const Tokenizer& tokenizer, FeatureOptions options) {
  options.training = false;
  auto features = build_features(dataset, tokenizer, options);
  return {std::move(dataset), std::move(features), options, tokenizer.identity()};
}

void check_prepared_for(const PreparedFeatures& prepared, const std::filesystem::path& path,
                        const TokenizerIdentity& tokenizer, const FeatureOptions& options) {
  if (prepared.tokenizer != tokenizer) {
    fail_difference(path, identity_text(prepared.tokenizer), identity_text(tokenizer));
  }
  check_same(path, setting("max-length"), prepared.options.max_length, options.max_length);
  check_same(path, setting("doc-stride"), prepared.options.doc_stride, options.doc_stride);
  check_same(path, setting("long"), long_contexts(prepared.options.truncate), long_contexts(options.truncate));
  check_same(path, setting("exact-labels"), prepared.options.exact_labels, options.exact_labels);
}

void check_window_order(const FeatureSet& set, std::string_view name) {
  std::size_t questions = 0;  // whose windows have begun
  std::uint32_t windows = 0;  // of the last question
  for (std::size_t i = 0; i < set.features.size(); ++i) {
    const Feature& row = set.features[i];
    const bool begins_next = row.question == questions && row.window == 0;
    const bool goes_on = row.question + std::size_t{1} == questions && row.window == windows;
    if (!begins_next && !goes_on) {
      fail(fmt::format("{}: window {} is number {} of question {}, out of order; {}", name, i, row.window, row.question,
                       prepare_again(name)));
    }
    windows = row.window + 1;
    if (begins_next) ++questions;
  }
  ensure(questions == set.questions.size(),
         fmt::format("{}: question {} has no windows; {}", name, questions, prepare_again(name)));
}

FeatureSet select_features(const SquadDataset& dataset, FeatureSet features, const FeatureOptions& options) {
  const auto& questions = dataset.questions;
  const auto is_left_out = [&](const SquadQuestion& question) { return !is_usable(question, options); };
  if (options.training) {
    for (const auto& question : questions) {
      if (!question.has_answers_key) {
        fail(fmt::format("question {}: has no 'answers'; training needs them", printable(question.id)));
      }
    }
    features.dropped_questions = static_cast<std::size_t>(std::ranges::count_if(questions, is_left_out));
  }
  std::erase_if(features.features.values(), [&](const Feature& feature) {
    return feature.question >= questions.size() || (options.training && is_left_out(questions[feature.question]));
  });
  features.sep_labels = count_sep_labels(features, options.exact_labels);
  return features;
}

}  // namespace mylos::data
