#include "app/program/replaceable_file.hpp"

#include "core/base/error.hpp"

#include <fmt/format.h>

namespace mylos::app {

namespace fs = std::filesystem;

void check_replaceable(const OutputFile& output, bool overwrite) {
  const fs::path& file = output.file;
  std::error_code unreadable;  // reported by the code that writes there
  if (!fs::exists(file, unreadable)) return;
  ensure(fs::is_regular_file(file, unreadable),
         fmt::format("{} {}: is not a file; give the name of a file", output.option, file.string()));
  if (overwrite || fs::file_size(file, unreadable) == 0 || output.is_ours(file)) return;
  fail(fmt::format("{} {}: exists and is not {}; choose another name, or {}", output.option, file.string(), output.kind,
                   output.advice));
}

}  // namespace mylos::app
