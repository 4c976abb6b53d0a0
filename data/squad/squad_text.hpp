#pragma once

#include <string>
#include <string_view>
#include <vector>

/// How the official SQuAD scripts compare two answers.
namespace mylos::data {

/// An answer lower-cased, without ASCII punctuation and articles, its words joined by single spaces.
std::string normalize_answer(std::string_view text);

/// The words of a normalised answer.
std::vector<std::string_view> normalized_words(std::string_view normalized);

/// F1 of the words two normalised answers share, counted with multiplicity; 0 where they share none.
double word_f1(const std::vector<std::string_view>& prediction, const std::vector<std::string_view>& gold);

}  // namespace mylos::data
