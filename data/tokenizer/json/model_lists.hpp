#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/files/json.hpp"
#include "data/tokenizer/json/token_table.hpp"

namespace mylos::data {

/// The long lists of a tokenizer.json, `vocab` and `merges` of its `model`, which are read without a JSON value for
/// each element.
struct ModelLists {
  /// A token of `vocab` with its number: an id if `vocab` is an object, a score if it is a list of pairs.
  struct Token {
    TokenTable::Entry entry;
    double number = 0;
  };
  /// The parts of a merge.
  struct Merge {
    TokenTable::Entry left;
    TokenTable::Entry right;
  };

  std::string text;  ///< of the tokens and merges
  std::vector<Token> tokens;
  std::vector<Merge> merges;
  bool has_ids = false;  ///< `vocab` is an object

  std::string_view view(const TokenTable::Entry& entry) const {
    return std::string_view(text).substr(entry.begin, entry.size);
  }
};

/// A tokenizer.json whose long lists are apart; they are empty lists or objects in `json`.
struct TokenizerJson {
  Json json;
  ModelLists lists;
};

/// Parses a tokenizer.json. Throws with the file and the path of the value if an element of a long list is not as it
/// has to be, if it is no JSON, and if it is larger than 1 GiB.
TokenizerJson parse_tokenizer_json(std::string_view text, std::string_view file);

}  // namespace mylos::data
