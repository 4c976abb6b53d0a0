#include "parallel/communicator/nccl/nccl_library.hpp"

#include "core/base/error.hpp"
#include "core/base/process/shared_library.hpp"
#include "core/base/text/printable.hpp"
#include "parallel/communicator/nccl/nccl_version.hpp"

#include <fmt/format.h>

namespace mylos::parallel {
namespace {

template <class Function>
void find(const SharedLibrary& library, const char* file, const char* name, Function& function) {
  if (library.find(name, function)) return;
  fail(fmt::format("{} has no {}: it is not {}, or older than 2.14; load a newer one (LD_LIBRARY_PATH), {}", file, name,
                   own_nccl.name, nccl_remedy()));
}

std::string one_line(const char* text) { return on_one_line(text == nullptr ? "" : text); }

}  // namespace

NcclLibrary load_nccl(const char* file) {
  const SharedLibrary opened(file);
  if (!opened.obstacle().empty()) {
    fail(fmt::format("{} cannot be loaded ({}); load its module or add its folder to LD_LIBRARY_PATH, {}",
                     own_nccl.name, opened.obstacle(), nccl_remedy()));
  }
  NcclLibrary library;
#define MYLOS_NCCL_FIND(member, function) find(opened, file, #function, library.member);
  MYLOS_NCCL_FUNCTIONS(MYLOS_NCCL_FIND)
#undef MYLOS_NCCL_FIND
  check_nccl(library, library.get_version(&library.version), nullptr, "asking for its version");
  const std::string obstacle = nccl_version_obstacle(file, library.version, NCCL_VERSION_CODE);
  if (!obstacle.empty()) fail(obstacle);
  return library;
}

const NcclLibrary& nccl_library() {
  static const NcclLibrary library = load_nccl(own_nccl.file);
  return library;
}

void check_nccl(const NcclLibrary& library, ncclResult_t result, ncclComm_t communicator, std::string_view what) {
  if (result == ncclSuccess || result == ncclInProgress) return;
  const std::string more = one_line(library.get_last_error(communicator));
  fail(fmt::format("{}: {}: {}{}; NCCL_DEBUG=INFO in the environment says more", own_nccl.name, what,
                   one_line(library.get_error_string(result)), more.empty() ? "" : fmt::format(" ({})", more)));
}

}  // namespace mylos::parallel
