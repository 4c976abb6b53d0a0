#include "core/base/process/shared_library.hpp"

#include "core/base/text/printable.hpp"

#include <dlfcn.h>

#include <utility>

namespace mylos {

SharedLibrary::SharedLibrary(const char* file) : handle_(::dlopen(file, RTLD_NOW | RTLD_LOCAL)) {
  if (handle_ == nullptr) obstacle_ = on_one_line(::dlerror());
}

void* SharedLibrary::address_of(const char* name) const {
  return handle_ == nullptr ? nullptr : ::dlsym(handle_, name);
}

}  // namespace mylos
