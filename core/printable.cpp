#include "core/printable.hpp"

#include <fmt/format.h>

namespace mylos {
namespace {

constexpr std::size_t longest_name = 80;

}  // namespace

std::string printable(std::string_view text) {
  std::string result;
  for (const char character : text.substr(0, longest_name)) {
    const auto byte = static_cast<unsigned char>(character);
    if (byte < 0x20 || byte == 0x7f) {
      result += fmt::format("\\x{:02x}", byte);
    } else {
      result += character;
    }
  }
  if (text.size() > longest_name) result += "...";
  return result;
}

}  // namespace mylos
