#include "core/base/text/standard_output.hpp"

#include "core/base/error.hpp"
#include "core/base/text/printable.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

namespace mylos {
namespace {

constexpr std::size_t buffer_bytes = 1 << 16;

std::string& buffer() {
  static std::string bytes;
  return bytes;
}

bool is_terminal() {
  static const bool is = ::isatty(STDOUT_FILENO) == 1;
  return is;
}

}  // namespace

void print(std::string_view text) { print_escapes(without_controls(text)); }

void print_result_text(std::string_view text) { is_terminal() ? print(text) : print_escapes(text); }

void print_indented_json(const nlohmann::ordered_json& value) {
  print_json_text(value.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

void print_json_text(std::string_view text) { print_escapes(json_without_controls(text)); }

void print_escapes(std::string_view text) {
  buffer() += text;
  if (is_terminal() || buffer().size() >= buffer_bytes) flush_output();
}

void flush_output() {
  std::string_view rest = buffer();
  while (!rest.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, rest.data(), rest.size());
    if (written >= 0) {
      rest.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno != EINTR) {
      const int code = errno;
      buffer().clear();
      if (code == EPIPE) throw ReaderGone();
      fail(fmt::format("cannot write to standard output: {}", std::strerror(code)));
    }
  }
  buffer().clear();
}

void log_line(std::string_view text) {
  std::string line(text);
  std::ranges::replace_if(
      line, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, ' ');
  line = without_controls(line) + '\n';
  std::fputs(line.c_str(), stderr);
}

void log_text(std::string_view text) { std::fputs(without_controls(text).c_str(), stderr); }

}  // namespace mylos
