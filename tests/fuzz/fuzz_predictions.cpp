// predictions.json, and the answers that a run saves for an evaluation.

#include <stdexcept>

#include "data/squad/answer_files.hpp"
#include "data/squad/squad_metrics.hpp"
#include "tests/fuzz/inputs.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const mylos::tests::MemoryFile file(mylos::tests::as_text(bytes, size));
  try {
    mylos::data::read_predictions(file.path());
  } catch (const std::runtime_error&) {  // how bad input is rejected
  }
  try {
    mylos::data::read_short_answers(file.path());
  } catch (const std::runtime_error&) {
  }
  return 0;
}
