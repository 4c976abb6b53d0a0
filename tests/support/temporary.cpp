#include "tests/support/temporary.hpp"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <utility>

namespace mylos::tests {

TemporaryDirectory::TemporaryDirectory() {
  auto pattern = (std::filesystem::temp_directory_path() / "mylos-test-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("cannot create " + pattern);
  path_ = pattern;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

EnvironmentVariable::EnvironmentVariable(std::string name, const std::optional<std::string>& value)
    : name_(std::move(name)) {
  const char* old = std::getenv(name_.c_str());
  was_set_ = old != nullptr;
  if (was_set_) old_ = old;
  if (value) {
    ::setenv(name_.c_str(), value->c_str(), 1);
  } else {
    ::unsetenv(name_.c_str());
  }
}

EnvironmentVariable::~EnvironmentVariable() {
  if (was_set_) {
    ::setenv(name_.c_str(), old_.c_str(), 1);
  } else {
    ::unsetenv(name_.c_str());
  }
}

StandInProgram::StandInProgram(std::string_view name, const std::string& commands)
    : path_("PATH", directory_.path().string() + ":/usr/bin:/bin") {
  write_file(directory_ / name, "#!/bin/sh\n" + commands + "\n");
  std::filesystem::permissions(directory_ / name, std::filesystem::perms::owner_all);
}

void write_file(const std::filesystem::path& path, std::string_view text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary).write(text.data(), static_cast<std::streamsize>(text.size()));
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

}  // namespace mylos::tests
