#pragma once

#include <string>
#include <string_view>
#include <vector>

/// Compares two answers as the official SQuAD scripts do.
namespace mylos::data {

/// Returns the answer in lower case, without ASCII punctuation and articles, with its words joined by single spaces.
std::string normalize_answer(std::string_view text);

/// Splits a normalised answer into words.
std::vector<std::string_view> normalized_words(std::string_view normalized);

/// Returns the F1 score of the words that two normalised answers have in common, counted with multiplicity. 0 if they
/// have none.
double word_f1(const std::vector<std::string_view>& prediction, const std::vector<std::string_view>& gold);

}  // namespace mylos::data
