// The tokenizer: any UTF-8 text gives tokens of the vocabulary, with ordered offsets within the text.

#include <stdexcept>
#include <string_view>

#include "tests/fuzz/inputs.hpp"
#include "tests/fuzz/small_vocabulary.hpp"

namespace {

using mylos::data::WordPieceTokenizer;

std::size_t count_code_points(std::string_view text) {
  std::size_t count = 0;
  for (const char byte : text) count += (static_cast<unsigned char>(byte) & 0xC0u) != 0x80u;
  return count;
}

void check(const WordPieceTokenizer& tokenizer, std::string_view text) {
  const auto tokens = tokenizer.tokenize(text);
  const std::size_t length = count_code_points(text);
  mylos::tests::expect(tokens.ids.size() == tokens.offsets.size(), "one offset for each token");
  std::size_t last = 0;
  for (std::size_t i = 0; i < tokens.ids.size(); ++i) {
    const auto id = static_cast<std::size_t>(tokens.ids[i]);
    mylos::tests::expect(tokens.ids[i] >= 0 && id < tokenizer.size(), "an id of the vocabulary");
    const auto [begin, end] = tokens.offsets[i];
    mylos::tests::expect(begin <= end && end <= length && begin >= last, "offsets in the text and in order");
    last = begin;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  static const auto uncased = mylos::tests::small_tokenizer(true);
  static const auto cased = mylos::tests::small_tokenizer(false);
  const auto text = mylos::tests::as_text(bytes, size);
  try {
    check(uncased, text);
    check(cased, text);
  } catch (const std::runtime_error&) {  // how text that is not UTF-8 is rejected
  }
  return 0;
}
