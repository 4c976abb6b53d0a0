// model.safetensors.index.json with one complete shard: every accepted tensor is in an open file.

#include <stdexcept>

#include "families/bert/bert_config.hpp"
#include "tests/fuzz/inputs.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  static const mylos::tests::InputDirectory directory;
  constexpr std::string_view header = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  std::string shard(8, '\0');
  shard[0] = static_cast<char>(header.size());
  directory.put("shard.safetensors", shard.append(header).append(4, '\0'));
  directory.put("model.safetensors.index.json", mylos::tests::as_text(bytes, size));
  try {
    const mylos::data::WeightFiles files(mylos::FileReader(), directory.path(), mylos::families::canonical_bert_name);
    for (const auto& [name, entry] : files.entries()) {
      mylos::tests::expect(entry.file != nullptr && entry.tensor != nullptr, "an entry has its file and tensor");
    }
  } catch (const std::runtime_error&) {  // how bad input is rejected
  }
  return 0;
}
