// Templates of chats: rendering one twice gives the same text, or the same error of one line.

#include <stdexcept>

#include "core/base/files/json.hpp"
#include "core/base/text/unicode.hpp"
#include "data/jinja/template.hpp"
#include "tests/fuzz/inputs.hpp"

namespace {

std::string render(std::string_view source) {
  using mylos::data::jinja::Value;
  static const Value messages(mylos::try_parse_ordered_json(
      R"([{"role": "system", "content": " é\n"}, {"role": "user", "content": "a b"}, {"role": "assistant", "content": [1, 2.5]}])"));
  try {
    return mylos::data::jinja::Template(source, "input").render({{"messages", messages}, {"tools", Value()}}, {}).text;
  } catch (const std::runtime_error& error) {
    mylos::tests::expect(std::string_view(error.what()).starts_with("input"), "an error names its file");
    return error.what();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const auto source = mylos::tests::as_text(bytes, size);
  if (mylos::first_invalid_utf8(source)) return 0;  // JSON and files are checked before
  mylos::tests::expect(render(source) == render(source), "a template renders the same text again");
  return 0;
}
