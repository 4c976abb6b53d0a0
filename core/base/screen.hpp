#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace mylos {

/// What of a text of lines fits into a window: lines cut to its columns, as none may wrap, and no more of them than
/// leave a row for the cursor. 0 = not known, nothing is cut.
std::string fitted(std::string_view text, std::size_t columns, std::size_t rows);

/// Shows pictures one over the other in a terminal, elsewhere one below the other where something has changed.
class Screen {
 public:
  Screen();

  /// `step` is what changes.
  void show(const std::string& text, std::size_t step);

 private:
  bool terminal_, shown_ = false;
  std::size_t lines_ = 0, step_ = 0;
};

}  // namespace mylos
