#include "core/base/text/screen.hpp"

#include "core/base/text/printable.hpp"
#include "core/base/text/standard_output.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

namespace mylos {

std::string fitted(std::string_view text, std::size_t columns, std::size_t rows) {
  std::string fit;
  for (std::size_t row = 1; !text.empty() && (rows == 0 || row < rows); ++row) {
    const std::size_t length = std::min(text.find('\n'), text.size());
    fit += text.substr(0, columns == 0 ? length : std::min(length, columns));
    fit += '\n';
    text.remove_prefix(std::min(length + 1, text.size()));
  }
  return fit;
}

Screen::Screen() : terminal_(::isatty(STDOUT_FILENO) == 1) {}

void Screen::show(const std::string& text, std::size_t step) {
  if (!terminal_) {
    if (!shown_ || step != step_) print(text);
  } else {
    winsize window{};
    ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window);  // zeros on failure
    const std::string picture = fitted(without_controls(text), window.ws_col, window.ws_row);
    // ANSI X3.64: move up to the first line of the old text, then erase to the end of the screen.
    print_escapes((lines_ > 0 ? fmt::format("\x1b[{}A\x1b[J", lines_) : "") + picture);
    lines_ = static_cast<std::size_t>(std::ranges::count(picture, '\n'));
  }
  flush_output();  // show it now, also in a file or pipe
  shown_ = true;
  step_ = step;
}

}  // namespace mylos
