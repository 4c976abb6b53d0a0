// Data in an HTML page is only text: well-formed UTF-8 without markup.

#include "app/report/html.hpp"
#include "core/base/text/unicode.hpp"
#include "tests/fuzz/inputs.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string escaped = mylos::app::escape_html(mylos::tests::as_text(bytes, size));
  mylos::tests::expect(escaped.find_first_of("<>\"'") == std::string::npos, "no markup is left");
  mylos::tests::expect(!mylos::first_invalid_utf8(escaped), "a page is UTF-8");
  for (const char* none : {"\xef\xbf\xbe", "\xef\xbf\xbf"}) {
    mylos::tests::expect(escaped.find(none) == std::string::npos, "XML knows every character");
  }
  for (const char c : escaped) {
    mylos::tests::expect(static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t',
                         "no control character is left");
  }
  return 0;
}
