#include "core/base/error.hpp"
#include "core/base/process/shared_library.hpp"
#include "core/base/setting_error.hpp"

#include <cublasLt.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>

namespace mylos::hipblaslt {
namespace {

/// Libraries of one process share one library of HIP, so that the major versions of ROCm have to be the same.
#if defined(HIP_VERSION_MAJOR) && HIP_VERSION_MAJOR >= 7
constexpr const char* file = "libhipblaslt.so.1";
#else
constexpr const char* file = "libhipblaslt.so.0";
#endif

/// 600 is 0.6.0, the version of ROCm 6.0.
constexpr int first_version = 600;

std::string remedy() {
  return fmt::format("load ROCm's module, or its folder lib in LD_LIBRARY_PATH, or do without: {}",
                     setting("gemm", "kokkos-kernels"));
}

Library load() {
  const SharedLibrary opened(file);
  if (!opened.obstacle().empty()) fail(fmt::format("hipBLASLt cannot be loaded ({}); {}", opened.obstacle(), remedy()));
  Library library;
#define MYLOS_HIPBLASLT_FIND(name, arguments)                              \
  if (!opened.find("hipblasLt" #name, library.name)) {                     \
    fail(fmt::format("{} has no hipblasLt{}; {}", file, #name, remedy())); \
  }
  MYLOS_HIPBLASLT_FUNCTIONS(MYLOS_HIPBLASLT_FIND)
  MYLOS_HIPBLASLT_OTHER_FUNCTIONS(MYLOS_HIPBLASLT_FIND)
#undef MYLOS_HIPBLASLT_FIND
  return library;
}

int version_of(cublasLtHandle_t handle) {
  int version = 0;
  if (library().GetVersion(handle, &version) != CUBLAS_STATUS_SUCCESS) fail("hipBLASLt: asking for its version");
  return version;
}

}  // namespace

const Library& library() {
  static const Library loaded = load();
  return loaded;
}

std::string obstacle() {
  static const std::string text = []() -> std::string {
    try {
      library();
      return {};
    } catch (const std::exception& error) {
      return error.what();
    }
  }();
  return text;
}

}  // namespace mylos::hipblaslt

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  using namespace mylos::hipblaslt;
  const cublasStatus_t status = library().Create(handle);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  const int version = version_of(*handle);
  if (version >= first_version) return status;
  library().Destroy(*handle);
  mylos::fail(fmt::format("{} is hipBLASLt 0.{}.{}, and 0.6 of ROCm 6 is the oldest that is called; {}", file,
                          version / 100, version % 100, remedy()));
}

std::size_t cublasLtGetVersion() {
  cublasLtHandle_t handle = nullptr;
  if (cublasLtCreate(&handle) != CUBLAS_STATUS_SUCCESS) mylos::fail("hipBLASLt: starting");
  const int version = mylos::hipblaslt::version_of(handle);
  mylos::hipblaslt::library().Destroy(handle);
  return static_cast<std::size_t>(version);
}

const char* cublasLtGetStatusString(cublasStatus_t status) {
  constexpr std::array names{"no error",           "not initialized",  "allocation failed",  "invalid value",
                             "mapping error",      "execution failed", "internal error",     "not supported",
                             "wrong architecture", "null handle",      "invalid enumerator", "unknown error"};
  return names.at(std::min(static_cast<std::size_t>(status), names.size() - 1));
}
