// config.json: an accepted configuration is unchanged after writing and reading.

#include <stdexcept>

#include "families/bert/bert_config.hpp"
#include "tests/fuzz/inputs.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  try {
    const auto config =
        mylos::families::read_bert_config({mylos::parse_json(mylos::tests::as_text(bytes, size), "input"), "input"});
    const auto again =
        mylos::families::read_bert_config({mylos::Json(mylos::families::bert_config_json(config)), "written"});
    mylos::tests::expect(again == config, "a configuration survives writing and reading");
  } catch (const std::runtime_error&) {  // how bad input is rejected
  }
  return 0;
}
