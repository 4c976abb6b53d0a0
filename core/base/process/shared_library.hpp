#pragma once

#include <string>

/// Libraries that are loaded at first use, so that the program starts on machines without them.
namespace mylos {

/// A library that stays loaded until the process ends.
class SharedLibrary {
 public:
  /// Loads `file`, using the search path of the system's loader.
  explicit SharedLibrary(const char* file);

  /// The loader's error message on one line; empty if the library was loaded.
  const std::string& obstacle() const { return obstacle_; }

  /// Sets `function` to the symbol called `name`. Returns false if the library has none.
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

}  // namespace mylos
