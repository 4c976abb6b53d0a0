#include "core/base/process/shared_library.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <utility>

namespace mylos {

SharedLibrary::SharedLibrary(const char* file) : handle_(::dlopen(file, RTLD_NOW | RTLD_LOCAL)) {
  if (handle_ == nullptr) obstacle_ = on_one_line(::dlerror());
}

void* SharedLibrary::address_of(const char* name) const {
  return handle_ == nullptr ? nullptr : ::dlsym(handle_, name);
}

std::string on_one_line(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  while (text.ends_with(' ')) text.pop_back();
  return text;
}

}  // namespace mylos
