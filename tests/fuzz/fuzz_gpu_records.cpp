// gpus/<node>.jsonl, which may end with a partial line after a job is killed.

#include <stdexcept>

#include "tests/fuzz/inputs.hpp"
#include "train/monitor/gpu_record.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  static const mylos::tests::InputDirectory directory;
  directory.put("gpus/node.jsonl", mylos::tests::as_text(bytes, size));
  try {
    mylos::train::read_gpu_samples(directory.path());
  } catch (const std::runtime_error&) {  // how bad input is rejected
  }
  return 0;
}
