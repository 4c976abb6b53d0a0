// tokenizer.json, and behind a zero byte a text: tokens of an accepted tokenizer have ids and offsets in range, and
// their ids a text.

#include <algorithm>
#include <stdexcept>
#include <string>

#include "core/base/text/unicode.hpp"
#include "data/tokenizer/json/json_tokenizer.hpp"
#include "tests/fuzz/inputs.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view input = mylos::tests::as_text(bytes, size);
  const std::size_t end = std::min(input.find('\0'), input.size());
  std::string text(input.substr(std::min(end + 1, input.size())));
  if (text.empty() || mylos::first_invalid_utf8(text)) text = "The  caf\u00e9's e\u0301 12 <s>ab</s>\n\u4e2d \u2581a";
  try {
    const mylos::data::JsonTokenizer tokenizer(input.substr(0, end), "tokenizer.json");
    const mylos::data::Tokens tokens = tokenizer.with_special(text);
    mylos::tests::expect(tokens.ids.size() == tokens.offsets.size(), "each token has offsets");
    const std::size_t length = mylos::count_code_points(text);
    for (std::size_t i = 0; i < tokens.ids.size(); ++i) {
      const auto id = static_cast<std::size_t>(tokens.ids[i]);
      mylos::tests::expect(id < tokenizer.size() && tokens.offsets[i].end <= length, "ids and offsets are in range");
      (void)tokenizer.continues_word(tokens.ids[i]);
      (void)tokenizer.bytes(tokens.ids[i]);
    }
    (void)tokenizer.decode(tokens.ids);
  } catch (const std::runtime_error&) {  // how bad input is rejected
  }
  return 0;
}
