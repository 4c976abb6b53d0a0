// vocab.txt: every token of an accepted vocabulary is found under its id.

#include <stdexcept>

#include "data/tokenizer/vocabulary.hpp"
#include "tests/fuzz/inputs.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const mylos::tests::MemoryFile memory(mylos::tests::as_text(bytes, size));
  try {
    const auto vocabulary = mylos::data::Vocabulary::load(memory.path());
    for (std::size_t i = 0; i < vocabulary.size(); ++i) {
      const auto id = static_cast<mylos::data::TokenId>(i);
      mylos::tests::expect(vocabulary.find(vocabulary.token(id)) == id, "a token is found under its id");
    }
  } catch (const std::runtime_error&) {  // how bad input is rejected
  }
  return 0;
}
