// safetensors: an accepted header describes readable bytes.

#include <stdexcept>

#include "data/huggingface/safetensors.hpp"
#include "tests/fuzz/inputs.hpp"

namespace {

void read(const mylos::data::SafetensorsFile& file, const mylos::data::TensorInfo& tensor) {
  try {
    const auto values = file.read_float(tensor.name);
    mylos::tests::expect(values.size() == mylos::data::element_count(tensor.shape, tensor.name),
                         "as many values as shaped");
  } catch (const std::runtime_error&) {  // not a floating-point type
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const mylos::tests::MemoryFile memory(mylos::tests::as_text(bytes, size));
  try {
    const mylos::data::SafetensorsFile file(mylos::FileReader(), memory.path());
    for (const auto& tensor : file.tensors()) read(file, tensor);
  } catch (const std::runtime_error&) {  // how bad input is rejected
  }
  return 0;
}
