// Bytes as a config.json.

#include <cstdint>
#include <stdexcept>
#include <string_view>

#include "data/bert_config.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  try {
    const auto config = mylos::data::parse_bert_config({reinterpret_cast<const char*>(bytes), size}, "input");
    // What was accepted is written and accepted again.
    if (mylos::data::parse_bert_config(mylos::data::bert_config_text(config), "written") != config) __builtin_trap();
  } catch (const std::runtime_error&) {
  } catch (const std::invalid_argument&) {
  }
  return 0;
}
