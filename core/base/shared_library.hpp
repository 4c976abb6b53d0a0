#pragma once

#include <string>

/// Libraries that are looked for when they are first used, so that the program starts on machines without them.
namespace mylos {

/// A library that stays open until the process ends.
class SharedLibrary {
 public:
  /// Opens `file`, which the system's loader looks for.
  explicit SharedLibrary(const char* file);

  /// Why it did not open, in the loader's words on one line; empty where it did.
  const std::string& obstacle() const { return obstacle_; }

  /// Sets `function` to the one called `name`. Returns false where the library has none.
  template <class Function>
  bool find(const char* name, Function& function) const {
    function = reinterpret_cast<Function>(address_of(name));
    return function != nullptr;
  }

 private:
  void* address_of(const char* name) const;

  void* handle_;
  std::string obstacle_;
};

/// `text` with spaces for its line breaks, and none at its end: libraries end their messages in line breaks.
std::string on_one_line(std::string text);

}  // namespace mylos
