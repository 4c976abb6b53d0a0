#include "tests/data/squad/prepared.hpp"

namespace mylos::data {

WordPieceTokenizer letter_tokenizer() {
  return WordPieceTokenizer(
      Vocabulary({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "b", "c", "d", "e", "f", "g"}, "letters"));
}

SquadDataset every_kind_of_question() {
  SquadDataset dataset;
  dataset.version = SquadVersion::v2_0;
  dataset.contexts = {"a b c d e f g a b c d e f g", "\u00e9 g", ""};
  dataset.questions = {{"two", 0, "a b", {{"c d", 4, true}, {"f", 10, true}}, true, false},
                       {"none", 0, " c", {}, true, true},
                       {"misplaced", 0, "d", {{"x", 3, false}}, true, false},
                       {"open", 1, "e", {}, false, false},
                       {"second", 1, "f", {{"g", 9, false}, {"g", 2, true}}, true, false},
                       {"empty", 2, "g", {}, true, true}};
  return dataset;
}

PreparedFeatures small_prepared() {
  return prepare_features(every_kind_of_question(), letter_tokenizer(), {.max_length = 12, .doc_stride = 2});
}

}  // namespace mylos::data
