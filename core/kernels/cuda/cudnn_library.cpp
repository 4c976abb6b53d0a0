#include "core/kernels/cuda/cudnn_library.hpp"

#include "core/base/error.hpp"
#include "core/base/process/shared_library.hpp"
#include "core/base/setting_error.hpp"
#include "core/base/text/printable.hpp"

#include <fmt/format.h>

#include <array>
#include <exception>

namespace mylos::cudnn {
namespace {

constexpr std::size_t major_version = 9;

std::string remedy() {
  return fmt::format(
      "load cuDNN 9 (its module, or its folder in LD_LIBRARY_PATH), or do without: {} auto or cublaslt, {} auto",
      setting("gemm"), setting("attention"));
}

template <class Function>
void find(const SharedLibrary& library, const char* file, const char* name, Function& function) {
  if (library.find(name, function)) return;
  fail(fmt::format("{} has no {}: it is not cuDNN, or not version {}; {}", file, name, major_version, remedy()));
}

}  // namespace

std::string version_text(std::size_t number) {
  const std::size_t unit = number < 10000 ? 1000 : 10000;  // up to version 8 without a zero: 8907 is 8.9.7
  return fmt::format("{}.{}.{}", number / unit, number % unit / 100, number % 100);
}

Library load(const char* file) {
  const SharedLibrary opened(file);
  if (!opened.obstacle().empty()) fail(fmt::format("cuDNN cannot be loaded ({}); {}", opened.obstacle(), remedy()));
  Library library;
#define MYLOS_CUDNN_FIND(member, name, result, arguments) find(opened, file, #name, library.member);
  MYLOS_CUDNN_FUNCTIONS(MYLOS_CUDNN_FIND)
#undef MYLOS_CUDNN_FIND
  library.number = library.get_version();
  library.version = version_text(library.number);
  if (library.number / 10000 != major_version) {
    fail(fmt::format("{} is cuDNN {}, and this build is for cuDNN {}; {}", file, library.version, major_version,
                     remedy()));
  }
  return library;
}

const Library& library() {
  static const Library loaded = load(library_file);
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

void check(const Library& library, Status status, const std::string& what) {
  if (status == success) return;
  std::array<char, 512> words{};
  library.get_last_error_string(words.data(), words.size() - 1);
  const std::string more = on_one_line(words.data());
  fail(fmt::format("cuDNN: {}: {}{}", what, library.get_error_string(status),
                   more.empty() ? "" : fmt::format(" ({})", more)));
}

}  // namespace mylos::cudnn
