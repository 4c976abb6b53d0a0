#include "app/checkpoint/checkpoint.hpp"
#include "core/base/error.hpp"
#include "parallel/checkpoint/checkpoint_directory.hpp"

#include <fmt/format.h>

namespace mylos::app {

namespace fs = std::filesystem;

fs::path checkpoint_at(const std::string& path) {
  fs::path file = parallel::resolve_checkpoint(path);
  ensure(!file.empty(), fmt::format("{}: contains no checkpoint", path));
  return file;
}

}  // namespace mylos::app
