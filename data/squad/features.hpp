#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <tuple>
#include <vector>

#include "core/base/shared_array.hpp"
#include "data/squad/squad.hpp"
#include "data/tokenizer/tokenizer.hpp"

/// Questions with their contexts divided into windows, [CLS] question [SEP] context part [SEP], labelled as in run_qa.
namespace mylos::data {

struct FeatureOptions {
  std::size_t max_length = 384;  ///< tokens per window, including the special tokens
  std::size_t doc_stride = 128;  ///< context tokens that consecutive windows have in common
  /// run_qa labels an answer that starts at a window's last context token with the [SEP] after it. With this option,
  /// such answers are labelled correctly.
  bool exact_labels = false;
  /// Leaves out questions whose answers are all misplaced. A question without an `answers` key is an error.
  bool training = false;
  bool answerable_only = false;  ///< training also leaves out questions without an answer
  bool truncate = false;         ///< one window per question, with the beginning of its context
};

/// Returns the value of --long that `truncate` stands for.
constexpr std::string_view long_contexts(bool truncate) { return truncate ? "truncate" : "split"; }

/// The members of Tokens, for many texts.
struct TokenArrays {
  SharedArray<TokenId> ids;
  SharedArray<CodePointRange> offsets;
};
inline auto members(TokenArrays& tokens) {
  auto& [ids, offsets] = tokens;  // does not compile if one is forgotten
  return std::tie(ids, offsets);
}

/// The tokens of several texts, one text after the other.
struct TokenizedTexts {
  TokenArrays tokens;
  SharedArray<std::size_t> starts = {0};  ///< (texts + 1)

  std::size_t size() const { return starts.size() - 1; }
  std::size_t count(std::size_t text) const { return starts[text + 1] - starts[text]; }
  std::span<const TokenId> ids(std::size_t text) const { return {tokens.ids.data() + starts[text], count(text)}; }
  std::span<const CodePointRange> offsets(std::size_t text) const {
    return {tokens.offsets.data() + starts[text], count(text)};
  }
};
inline auto members(TokenizedTexts& texts) {
  auto& [tokens, starts] = texts;  // does not compile if one is forgotten
  return std::tie(tokens, starts);
}

/// One window. Positions count from [CLS]. Labels are -1 if the question has no usable label.
struct Feature {
  std::uint32_t question = 0;  ///< index into SquadDataset::questions
  std::uint32_t window = 0;    ///< 0, 1, ... within the question
  std::uint32_t context_begin = 0;
  std::uint32_t context_count = 0;  ///< tokens [begin, begin + count) of its context
  std::int32_t start = -1;
  std::int32_t end = -1;
};

/// All windows of a data set, 24 bytes each. The tokens of each question and context are stored once.
struct FeatureSet {
  PairLayout layout;
  TokenizedTexts questions;
  TokenizedTexts contexts;
  SharedArray<std::uint32_t> context_of_question;
  SharedArray<Feature> features;      ///< by question, then by window
  std::size_t sep_labels = 0;         ///< labelled windows whose answer starts at their last context token
  std::size_t dropped_questions = 0;  ///< left out of training because every answer is misplaced

  /// Returns the number of tokens in a window.
  std::size_t length(const Feature& feature) const { return context_position(feature) + feature.context_count + 1; }
  /// Returns the position of the window's first context token, where the layout's second token type begins.
  std::size_t context_position(const Feature& feature) const {
    return layout.second_position(questions.count(feature.question));
  }
  /// Appends the window's length(feature) token ids.
  void append_input_ids(const Feature& feature, std::vector<TokenId>& ids) const;
  /// Returns the range of code points of each context token of the window, (context_count).
  std::span<const CodePointRange> context_offsets(const Feature& feature) const;
};
inline auto members(FeatureSet& set) {
  // This does not compile if a member is missing.
  auto& [layout, questions, contexts, context_of_question, features, sep_labels, dropped_questions] = set;
  return std::tie(layout, questions, contexts, context_of_question, features, sep_labels, dropped_questions);
}

/// Tokenizes `dataset` and divides it into windows. Throws with the question if it leaves no room for its context, or
/// if it needs several windows and leaves room for fewer than doc_stride + 1 tokens.
FeatureSet build_features(const SquadDataset& dataset, const Tokenizer& tokenizer, const FeatureOptions& options);

}  // namespace mylos::data
