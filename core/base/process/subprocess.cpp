#include "core/base/process/subprocess.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/process/signals.hpp"
#include "core/base/uninterrupted.hpp"

extern char** environ;

namespace mylos {
namespace {

/// A pipe whose ends are closed with the object, and in the started program.
class Pipe {
 public:
  Pipe() {
    if (::pipe2(ends_.data(), O_CLOEXEC) != 0) fail(fmt::format("cannot create a pipe: {}", std::strerror(errno)));
  }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  int read_end() const { return ends_[0]; }
  int write_end() const { return ends_[1]; }
  void close_write_end() { close_end(1); }

 private:
  void close_end(std::size_t end) {
    if (ends_[end] >= 0) ::close(std::exchange(ends_[end], -1));
  }
  std::array<int, 2> ends_{};
};

/// Text for the standard input of a program. It is kept in memory only, so no copy remains however this process ends.
class Input {
 public:
  explicit Input(std::string_view text)
      : descriptor_(text.empty() ? ::open("/dev/null", O_RDONLY | O_CLOEXEC)
                                 : ::memfd_create("mylos-input", MFD_CLOEXEC)) {
    if (text.empty() && descriptor_ >= 0) return;
    const auto size = static_cast<ssize_t>(text.size());
    const bool is_written = descriptor_ >= 0 && ::write(descriptor_, text.data(), text.size()) == size &&
                            ::lseek(descriptor_, 0, SEEK_SET) == 0;
    if (is_written) return;
    const std::string reason = std::strerror(errno);
    if (descriptor_ >= 0) ::close(descriptor_);
    fail(fmt::format("cannot prepare the input of a program: {}", reason));
  }
  ~Input() { ::close(descriptor_); }
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

/// Starts the program with the given standard input, output and error.
pid_t start(const std::vector<std::string>& arguments, const Input& input, const Pipe& output, const Pipe& errors) {
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_adddup2(&files, input.descriptor(), STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&files, output.write_end(), STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&files, errors.write_end(), STDERR_FILENO);
  return spawn_process(arguments, files);
}

/// Appends the bytes that can be read now; returns false at the end.
bool read_some(int descriptor, std::string& text) {
  std::array<char, 4096> buffer;
  const auto count = uninterrupted([&] { return ::read(descriptor, buffer.data(), buffer.size()); });
  if (count < 0) return false;
  text.append(buffer.data(), static_cast<std::size_t>(count));
  return count > 0;
}

/// Reads both pipes until both end. Reading them one after the other would block a program that fills the second.
void read_both(int output, std::string& output_text, int errors, std::string& errors_text) {
  std::array<pollfd, 2> waiting{{{output, POLLIN, 0}, {errors, POLLIN, 0}}};
  while (waiting[0].fd >= 0 || waiting[1].fd >= 0) {
    if (uninterrupted([&] { return ::poll(waiting.data(), waiting.size(), -1); }) < 0) break;
    if (waiting[0].revents != 0 && !read_some(output, output_text)) waiting[0].fd = -1;
    if (waiting[1].revents != 0 && !read_some(errors, errors_text)) waiting[1].fd = -1;
  }
}

/// Errors: std::runtime_error if the system keeps no exit code, for example if SIGCHLD is ignored.
int wait_for(pid_t process, const std::string& program) {
  int status = 0;
  if (uninterrupted([&] { return ::waitpid(process, &status, 0); }) < 0) {
    fail(fmt::format("{}: its exit code is not known: {}", program, std::strerror(errno)));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

ProcessResult run_process(const std::vector<std::string>& arguments, std::string_view input) {
  require(!arguments.empty(), "run_process needs a program");
  const Input held(input);
  Pipe output;
  Pipe errors;
  const auto process = start(arguments, held, output, errors);
  output.close_write_end();
  errors.close_write_end();
  ProcessResult result;
  read_both(output.read_end(), result.output, errors.read_end(), result.errors);
  result.exit_code = wait_for(process, arguments.front());
  return result;
}

pid_t spawn_process(const std::vector<std::string>& arguments, posix_spawn_file_actions_t& files) {
  std::vector<char*> pointers;
  for (const auto& argument : arguments) pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  if (const sigset_t* mask = inherited_signal_mask(); mask != nullptr) {
    ::posix_spawnattr_setsigmask(&attributes, mask);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  }
  pid_t process = 0;
  const int code = ::posix_spawnp(&process, pointers[0], &files, &attributes, pointers.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&files);
  if (code != 0) fail(fmt::format("{} cannot be run: {}", arguments[0], std::strerror(code)));
  return process;
}

std::string last_line(const std::string& text) {
  constexpr std::string_view blank = " \t\r\n";
  const auto end = text.find_last_not_of(blank);
  if (end == std::string::npos) return {};
  const auto before = text.find_last_of("\r\n", end);
  const auto begin = before == std::string::npos ? 0 : before + 1;
  return text.substr(begin, end + 1 - begin);
}

}  // namespace mylos
