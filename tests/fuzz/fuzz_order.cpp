// --order FILE: accepted steps name existing windows.

#include <stdexcept>

#include "tasks/interface/order_file.hpp"
#include "tasks/question_answering/squad_task.hpp"
#include "tests/fuzz/inputs.hpp"
#include "tests/fuzz/small_vocabulary.hpp"

namespace {

mylos::tasks::SquadWindows make_windows() {
  mylos::data::SquadDataset dataset;
  dataset.contexts = {"a b c d e f g h i j k l", "m"};
  dataset.questions = {{"one", 0, "x", {{"b", 2, true}}, true, false}, {"2", 1, "y", {{"m", 0, true}}, true, false}};
  mylos::tasks::SquadConfig config;
  config.max_length = 10;
  config.doc_stride = 2;
  return mylos::tasks::cut_windows(std::move(dataset), mylos::tests::small_tokenizer(true), config, true);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  static const mylos::tasks::SquadWindows windows = make_windows();
  const mylos::tests::MemoryFile file(mylos::tests::as_text(bytes, size));
  try {
    const auto order = mylos::tasks::read_order(file.path(), windows);
    mylos::tests::expect(!order.empty(), "an order has steps");
    for (const auto& step : order) {
      mylos::tests::expect(!step.empty(), "a step has samples");
      for (const std::size_t window : step) mylos::tests::expect(window < windows.count(), "a window that is there");
    }
    mylos::tasks::order_checksum(order);
  } catch (const std::runtime_error&) {  // how bad input is rejected
  }
  return 0;
}
