#pragma once

#include "data/squad/feature_file.hpp"

namespace mylos::data {

/// A tokenizer with one token a letter.
WordPieceTokenizer letter_tokenizer();

/// A small data set with every kind of question: answered twice, unanswerable, misplaced, without answers, beyond
/// ASCII.
SquadDataset every_kind_of_question();

/// That data set prepared with windows of 12 tokens that overlap by 2.
PreparedFeatures small_prepared();

}  // namespace mylos::data
