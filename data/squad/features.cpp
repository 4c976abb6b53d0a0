#include "data/squad/features.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.hpp"
#include "core/base/files/files.hpp"
#include "core/base/text/printable.hpp"
#include "core/base/text/python_text.hpp"

namespace mylos::data {
namespace {

class FeatureBuilder {
 public:
  FeatureBuilder(const SquadDataset& dataset, const Tokenizer& tokenizer, const FeatureOptions& options)
      : dataset_(dataset), tokenizer_(tokenizer), options_(options) {
    set_.layout = tokenizer.pair_layout();
  }

  FeatureSet build() {
    for (const std::string& context : dataset_.contexts) add_text(set_.contexts, context);
    for (const SquadQuestion& question : dataset_.questions) {
      set_.context_of_question.values().push_back(static_cast<std::uint32_t>(question.context));
      add_text(set_.questions, python_lstrip(question.question));  // run_qa strips only the left side
      add_question(question);
    }
    return std::move(set_);
  }

 private:
  void add_text(TokenizedTexts& texts, std::string_view text) {
    text_.ids.clear();
    text_.offsets.clear();
    tokenizer_.tokenize(text, text_);
    std::vector<TokenId>& ids = texts.tokens.ids.values();
    std::vector<CodePointRange>& offsets = texts.tokens.offsets.values();
    ids.insert(ids.end(), text_.ids.begin(), text_.ids.end());
    offsets.insert(offsets.end(), text_.offsets.begin(), text_.offsets.end());
    texts.starts.values().push_back(ids.size());
  }

  void add_question(const SquadQuestion& question) {
    const SquadAnswer* answer = first_aligned(question);
    if (options_.training) {
      if (!question.has_answers_key) {
        fail(fmt::format("question {}: has no 'answers'; training needs them", printable(question.id)));
      }
      if (answer == nullptr && (options_.answerable_only || !question.answers.empty())) {
        ++set_.dropped_questions;
        return;
      }
    }
    const bool labelled = answer != nullptr || (question.has_answers_key && question.answers.empty());
    const std::size_t room = context_room(question);
    const std::size_t count = set_.contexts.count(question.context);
    std::uint32_t window = 0;
    for (std::size_t begin = 0;; begin += room - options_.doc_stride) {
      Feature feature;
      feature.question = static_cast<std::uint32_t>(set_.questions.size() - 1);
      feature.window = window++;
      feature.context_begin = static_cast<std::uint32_t>(begin);
      feature.context_count = static_cast<std::uint32_t>(std::min(room, count - begin));
      if (labelled) label(feature, answer);
      set_.features.values().push_back(feature);
      if (options_.truncate || begin + room >= count) return;
    }
  }

  static const SquadAnswer* first_aligned(const SquadQuestion& question) {
    const auto found = std::find_if(question.answers.begin(), question.answers.end(),
                                    [](const SquadAnswer& answer) { return answer.aligned; });
    return found == question.answers.end() ? nullptr : &*found;
  }

  /// Returns the number of context tokens that fit into a window with this question.
  std::size_t context_room(const SquadQuestion& question) const {
    const std::size_t tokens = set_.questions.count(set_.questions.size() - 1);
    const std::size_t used = tokens + set_.layout.special_count();
    const std::size_t room = options_.max_length > used ? options_.max_length - used : 0;
    const bool is_cut = !options_.truncate && set_.contexts.count(question.context) > room;
    if (room == 0 || (is_cut && room <= options_.doc_stride)) {
      fail(fmt::format(
          "question {}: its {} tokens leave {} of {} for the context, which must be more than the stride {}; use a "
          "larger maximal length, a smaller stride or a shorter question",
          printable(question.id), tokens, room, options_.max_length, is_cut ? options_.doc_stride : 0));
    }
    return room;
  }

  /// Sets run_qa's labels: [CLS] if there is no answer or the window does not contain all of it.
  void label(Feature& feature, const SquadAnswer* answer) {
    feature.start = feature.end = 0;
    const auto offsets = set_.context_offsets(feature);
    if (answer == nullptr || offsets.empty()) return;
    const std::size_t first_char = answer->start;
    const std::size_t end_char = first_char + count_code_points(answer->text);
    if (offsets.front().begin > first_char || offsets.back().end < end_char) return;
    const auto begins_after = [&](const CodePointRange& token) { return token.begin > first_char; };
    const auto ends_before = [&](const CodePointRange& token) { return token.end < end_char; };
    auto start = std::find_if(offsets.begin(), offsets.end(), begins_after) - offsets.begin() - 1;
    const auto end = offsets.rend() - std::find_if(offsets.rbegin(), offsets.rend(), ends_before);
    if (static_cast<std::size_t>(start) + 1 == offsets.size()) {
      ++set_.sep_labels;
      if (!options_.exact_labels) ++start;  // run_qa's scan also accepts the [SEP], whose offset is (0, 0)
    }
    const auto first_position = static_cast<std::ptrdiff_t>(set_.context_position(feature));
    feature.start = static_cast<std::int32_t>(first_position + start);
    feature.end = static_cast<std::int32_t>(first_position + end);
  }

  const SquadDataset& dataset_;
  const Tokenizer& tokenizer_;
  FeatureOptions options_;
  FeatureSet set_;
  Tokens text_;  ///< of the last text
};

}  // namespace

void FeatureSet::append_input_ids(const Feature& feature, std::vector<TokenId>& ids) const {
  const auto question = questions.ids(feature.question);
  const auto context =
      contexts.ids(context_of_question[feature.question]).subspan(feature.context_begin, feature.context_count);
  ids.push_back(layout.first);
  ids.insert(ids.end(), question.begin(), question.end());
  ids.insert(ids.end(), layout.separators, layout.separator);
  ids.insert(ids.end(), context.begin(), context.end());
  ids.push_back(layout.separator);
}

std::span<const CodePointRange> FeatureSet::context_offsets(const Feature& feature) const {
  return contexts.offsets(context_of_question[feature.question]).subspan(feature.context_begin, feature.context_count);
}

FeatureSet build_features(const SquadDataset& dataset, const Tokenizer& tokenizer, const FeatureOptions& options) {
  return FeatureBuilder(dataset, tokenizer, options).build();
}

}  // namespace mylos::data
