#pragma once

#include "data/squad/feature_file.hpp"
#include "data/tokenizer/json/wordpiece.hpp"

namespace mylos::data {

/// Returns a tokenizer with one token per letter.
WordPieceTokenizer letter_tokenizer();

/// Returns a small data set with every kind of question: with two answers, unanswerable, misplaced, without answers,
/// and beyond ASCII.
SquadDataset every_kind_of_question();

/// Returns that data set, prepared with windows of 12 tokens that overlap by 2.
PreparedFeatures small_prepared();

}  // namespace mylos::data
