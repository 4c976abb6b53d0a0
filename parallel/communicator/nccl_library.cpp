#include "parallel/communicator/nccl_library.hpp"

#include "core/base/error.hpp"
#include "parallel/communicator/nccl_version.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>

namespace mylos::parallel {
namespace {

template <class Function>
void find(void* library, const char* file, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  if (function != nullptr) return;
  fail(fmt::format("{} has no {}: it is not NCCL, or older than 2.14; load a newer one (LD_LIBRARY_PATH), {}", file,
                   name, nccl_remedy));
}

/// NCCL's words end in line breaks.
std::string one_line(const char* text) {
  std::string line = text == nullptr ? "" : text;
  std::replace(line.begin(), line.end(), '\n', ' ');
  while (line.ends_with(' ')) line.pop_back();
  return line;
}

}  // namespace

NcclLibrary load_nccl(const char* file) {
  void* const handle = ::dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    fail(fmt::format("NCCL cannot be loaded ({}); load its module or add its folder to LD_LIBRARY_PATH, {}",
                     one_line(::dlerror()), nccl_remedy));
  }
  NcclLibrary library;
#define MYLOS_NCCL_FIND(member, function) find(handle, file, #function, library.member);
  MYLOS_NCCL_FUNCTIONS(MYLOS_NCCL_FIND)
#undef MYLOS_NCCL_FIND
  check_nccl(library, library.get_version(&library.version), nullptr, "asking for its version");
  const std::string obstacle = nccl_version_obstacle(file, library.version, NCCL_VERSION_CODE);
  if (!obstacle.empty()) fail(obstacle);
  return library;
}

const NcclLibrary& nccl_library() {
  static const NcclLibrary library = load_nccl("libnccl.so.2");
  return library;
}

void check_nccl(const NcclLibrary& library, ncclResult_t result, ncclComm_t communicator, std::string_view what) {
  if (result == ncclSuccess || result == ncclInProgress) return;
  const std::string more = one_line(library.get_last_error(communicator));
  fail(fmt::format("NCCL: {}: {}{}; NCCL_DEBUG=INFO in the environment says more", what,
                   one_line(library.get_error_string(result)), more.empty() ? "" : fmt::format(" ({})", more)));
}

}  // namespace mylos::parallel
