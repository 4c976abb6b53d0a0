// JSON and SQuAD: what is read refers only to what is there.

#include <stdexcept>

#include "data/squad.hpp"
#include "tests/fuzz/inputs.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  try {
    const auto dataset = mylos::data::parse_squad(mylos::tests::as_text(bytes, size), "input");
    for (const auto& question : dataset.questions) {
      mylos::tests::expect(question.context < dataset.contexts.size(), "a question's context exists");
    }
    mylos::data::find_misplaced_answers(dataset);
  } catch (const std::runtime_error&) {  // how bad input is refused
  }
  return 0;
}
