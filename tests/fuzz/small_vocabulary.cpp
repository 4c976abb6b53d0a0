#include "tests/fuzz/small_vocabulary.hpp"

#include <string>
#include <utility>
#include <vector>

namespace mylos::tests {

data::WordPieceTokenizer small_tokenizer(bool lower_case) {
  std::vector<std::string> tokens{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "##st", "un", "##aff", "##able"};
  for (char letter = '!'; letter <= '~'; ++letter) {
    tokens.emplace_back(1, letter);
    tokens.push_back(std::string("##") + letter);
  }
  tokens.insert(tokens.end(), {"é", "中", "##ß"});
  return data::WordPieceTokenizer({std::move(tokens), "vocabulary"},
                                  {.do_lower_case = lower_case, .strip_accents = {}});
}

}  // namespace mylos::tests
