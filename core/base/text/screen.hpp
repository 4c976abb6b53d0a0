#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace mylos {

/// Cuts text to the size of a terminal window: lines are cut to `columns` so that none wraps, and one row is left for
/// the cursor. 0 means unknown: no cut in that direction.
std::string fitted(std::string_view text, std::size_t columns, std::size_t rows);

/// Shows successive versions of a text: on a terminal each replaces the one before; elsewhere each is appended if it
/// has changed.
class Screen {
 public:
  Screen();

  /// Shows `text`. A different `step` means that the text has changed.
  void show(const std::string& text, std::size_t step);

 private:
  bool terminal_, shown_ = false;
  std::size_t lines_ = 0, step_ = 0;
};

}  // namespace mylos
