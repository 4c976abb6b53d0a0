#pragma once

#include "parallel/communicator/agreement.hpp"
#include "tests/support/launch.hpp"
#include "tests/support/temporary.hpp"

#include <optional>

namespace mylos::tests {

/// A fresh directory visible to all ranks, removed after all ranks have reached its destructor. Collective.
class SharedDirectory {
 public:
  SharedDirectory() {
    parallel::Communicator& world = launch().world();
    if (world.rank() == 0) own_.emplace();
    path_ = parallel::broadcast(world, own_ ? own_->path().string() : "");
  }
  ~SharedDirectory() { launch().world().barrier("the end of a directory"); }
  SharedDirectory(const SharedDirectory&) = delete;
  SharedDirectory& operator=(const SharedDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

 private:
  std::optional<TemporaryDirectory> own_;
  std::filesystem::path path_;
};

}  // namespace mylos::tests
