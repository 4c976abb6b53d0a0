#pragma once

#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace mylos::tests {

/// A fresh directory, removed with its contents on destruction.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

/// Sets an environment variable for the lifetime of the object, or removes it if there is no value. Then restores the
/// old value.
class EnvironmentVariable {
 public:
  EnvironmentVariable(std::string name, const std::optional<std::string>& value);
  ~EnvironmentVariable();
  EnvironmentVariable(const EnvironmentVariable&) = delete;
  EnvironmentVariable& operator=(const EnvironmentVariable&) = delete;

 private:
  std::string name_;
  std::string old_;
  bool was_set_;
};

/// Puts a shell script of this name first in PATH for the lifetime of the object.
class StandInProgram {
 public:
  StandInProgram(std::string_view name, const std::string& commands);

 private:
  TemporaryDirectory directory_;
  EnvironmentVariable path_;
};

/// Changes the working directory to `directory` for the lifetime of the object.
class WorkingDirectory {
 public:
  explicit WorkingDirectory(const std::filesystem::path& directory) : old_(std::filesystem::current_path()) {
    std::filesystem::current_path(directory);
  }
  ~WorkingDirectory() { std::filesystem::current_path(old_); }
  WorkingDirectory(const WorkingDirectory&) = delete;
  WorkingDirectory& operator=(const WorkingDirectory&) = delete;

 private:
  std::filesystem::path old_;
};

/// Writes `text` to `path` and creates its directory; reads a whole file.
void write_file(const std::filesystem::path& path, std::string_view text);
std::string read_file(const std::filesystem::path& path);

/// Returns the message of the std::exception thrown by `action`, or "(nothing was thrown)".
template <class Action>
std::string error_of(Action&& action) {
  try {
    action();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "(nothing was thrown)";
}

/// Like error_of, but shows `file` at the start of the message as "F".
template <class Action>
std::string error_of_file(const std::filesystem::path& file, Action&& action) {
  const std::string message = error_of(action);
  return message.starts_with(file.string()) ? "F" + message.substr(file.string().size()) : message;
}

}  // namespace mylos::tests
