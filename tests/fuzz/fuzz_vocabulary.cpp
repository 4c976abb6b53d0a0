// vocab.txt: every token of an accepted vocabulary is found under its id, and blank lines are not found.

#include <optional>
#include <stdexcept>
#include <string>

#include "data/tokenizer/vocabulary.hpp"
#include "tests/fuzz/inputs.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const mylos::tests::MemoryFile memory(mylos::tests::as_text(bytes, size));
  try {
    const auto vocabulary = mylos::data::Vocabulary::load(mylos::FileReader(), memory.path());
    for (std::size_t i = 0; i < vocabulary.size(); ++i) {
      const auto id = static_cast<mylos::data::TokenId>(i);
      const bool is_blank = vocabulary.token(id).find_first_not_of(" \t\r\v\f") == std::string::npos;
      const std::optional<mylos::data::TokenId> found = vocabulary.find(vocabulary.token(id));
      mylos::tests::expect(is_blank ? !found : found == id, "a token is found under its id, and a blank line is not");
    }
  } catch (const std::runtime_error&) {  // how bad input is rejected
  }
  return 0;
}
