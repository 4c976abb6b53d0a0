// tokenizer_config.json of a model directory: the tokenizer supports all accepted options.

#include <stdexcept>

#include "families/bert/wordpiece_files.hpp"
#include "tests/fuzz/inputs.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  static const mylos::tests::InputDirectory directory;
  directory.put("tokenizer_config.json", mylos::tests::as_text(bytes, size));
  try {
    const mylos::data::TokenizerOptions options =
        mylos::families::read_tokenizer_options(mylos::FileReader(), directory.path());
    const mylos::data::Vocabulary vocabulary({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "e", "É"}, "vocabulary");
    const mylos::data::WordPieceTokenizer tokenizer(vocabulary, options);
    mylos::tests::expect(tokenizer.tokenize("É").ids.size() == 1, "a letter is a token");
  } catch (const std::runtime_error&) {  // how bad input is rejected
  }
  return 0;
}
