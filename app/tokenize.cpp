#include "app/run_commands.hpp"
#include "core/base/error.hpp"
#include "core/base/standard_output.hpp"
#include "core/base/unicode.hpp"
#include "data/tokenizer/vocabulary.hpp"
#include "data/tokenizer/wordpiece.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <iostream>
#include <string>

/// mylos tokenize: lines in, one JSON value a line out.
namespace mylos::app {
namespace {

using Json = nlohmann::ordered_json;

Json with_offsets(const data::Tokens& tokens, const data::Vocabulary& vocabulary) {
  Json words = Json::array(), offsets = Json::array();
  for (std::size_t i = 0; i < tokens.ids.size(); ++i) {
    words.push_back(vocabulary.token(tokens.ids[i]));
    offsets.push_back(Json::array({tokens.offsets[i].begin, tokens.offsets[i].end}));
  }
  return {{"tokens", words}, {"ids", tokens.ids}, {"offsets", offsets}};
}

}  // namespace

int run_tokenize(const Arguments& arguments) {
  const data::TokenizerOptions options{.do_lower_case = !arguments.cased, .strip_accents = {}};
  const data::WordPieceTokenizer tokenizer(data::Vocabulary::load(arguments.vocabulary), options);
  std::string line;
  for (std::size_t number = 1; std::getline(std::cin, line); ++number) {
    ensure_utf8(line, fmt::format("standard input, line {}", number));
    const data::Tokens tokens = tokenizer.tokenize(line);
    const Json result = arguments.offsets ? with_offsets(tokens, tokenizer.vocabulary()) : Json(tokens.ids);
    print_json_text(result.dump() + "\n");
  }
  ensure(!std::cin.bad(), "cannot read standard input");
  return 0;
}

}  // namespace mylos::app
