#include "tests/support/process.hpp"

#include "core/base/process/subprocess.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/temporary.hpp"
#include "tests/support/waiting.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace mylos::tests {
namespace {

/// Returns whether a process has children that have ended, which it has not waited for, and no others.
bool has_only_ended_children(pid_t process) {
  bool has_ended = false;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    if (std::isdigit(static_cast<unsigned char>(entry.path().filename().native().front())) == 0) continue;
    std::ifstream file(entry.path() / "stat");
    std::string stat((std::istreambuf_iterator<char>(file)), {});  // "12 (name) S 11 ...": state and parent
    const std::size_t name_end = stat.rfind(')');
    if (name_end == std::string::npos) continue;
    std::istringstream fields(stat.substr(name_end + 1));
    char state = 0;
    pid_t parent = 0;
    if (!(fields >> state >> parent) || parent != process) continue;
    if (state != 'Z' && state != 'X') return false;
    has_ended = true;
  }
  return has_ended;
}

/// Ends a launcher that has left its ended ranks for a minute. When ranks fail, Open MPI 4.1's mpirun sometimes waits
/// for a thread of PMIx 4.2 that waits for a lock for ever.
class StuckLauncher {
 public:
  explicit StuckLauncher(pid_t process) : process_(process) {}
  /// Is called every `between_calls`.
  void look() {
    if (++calls_ % (std::chrono::seconds(5) / between_calls) != 0) return;
    times_ = has_only_ended_children(process_) ? times_ + 1 : 0;
    if (times_ > 12) was_ended_ = ::kill(process_, SIGKILL) == 0;
  }
  bool was_ended() const { return was_ended_; }
  static constexpr std::chrono::milliseconds between_calls{2};

 private:
  pid_t process_;
  std::int64_t calls_ = 0, times_ = 0;
  bool was_ended_ = false;
};

/// Waits for a process and returns its exit code. `usage` receives its resource usage. Errors: std::runtime_error if
/// the process hangs and had to be ended; mpirun ends its ranks, too.
int wait_for(pid_t process, rusage& usage) {
  int status = 0;
  StuckLauncher stuck(process);
  const auto has_ended = [&] {
    const pid_t ended = ::wait4(process, &status, WNOHANG, &usage);
    if (ended < 0 && errno != EINTR) throw std::runtime_error("wait4 failed");
    if (ended <= 0) stuck.look();
    return ended > 0;
  };
  const bool ended = wait_until(has_ended, StuckLauncher::between_calls);
  if (stuck.was_ended()) std::fputs("a launcher was stuck after its ranks had ended, and was killed\n", stderr);
  if (ended) return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  ::kill(process, SIGTERM);
  std::this_thread::sleep_for(std::chrono::seconds(10));
  ::kill(process, SIGKILL);
  wait_until(has_ended);
  throw std::runtime_error("a program hangs");
}

pid_t spawn(const std::vector<std::string>& words, const std::filesystem::path& input,
            const std::filesystem::path& output, const std::filesystem::path& errors) {
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  constexpr int writing = O_WRONLY | O_CREAT | O_TRUNC;
  ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, input.c_str(), O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, output.c_str(), writing, 0600);
  ::posix_spawn_file_actions_addopen(&files, STDERR_FILENO, errors.c_str(), writing, 0600);
  return spawn_process(words, files);
}

}  // namespace

std::vector<std::string> ProgramRun::error_lines() const {
  std::vector<std::string> lines;
  std::istringstream stream(errors);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

RunningProgram::RunningProgram(const std::vector<std::string>& arguments, const std::string& input,
                               const std::filesystem::path& output, const std::filesystem::path& program)
    : output_(output) {
  write_file(directory_ / "input", input);
  std::vector<std::string> words{program.empty() ? tests::program().string() : program.string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  process_ = spawn(words, directory_ / "input", output.empty() ? directory_ / "output" : output, directory_ / "errors");
}

RunningProgram::~RunningProgram() {
  if (process_ == 0) return;
  ::kill(process_, SIGKILL);
  ::waitpid(process_, nullptr, 0);
}

void RunningProgram::send(int signal) const { ::kill(process_, signal); }

ProgramRun RunningProgram::wait() {
  ProgramRun run;
  rusage usage{};
  run.exit_code = wait_for(process_, usage);
  run.peak_memory = static_cast<std::size_t>(usage.ru_maxrss) * 1024;
  process_ = 0;
  if (output_.empty()) run.output = read_file(directory_ / "output");
  run.errors = read_file(directory_ / "errors");
  return run;
}

std::vector<std::string> joined(std::vector<std::string> words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

ProgramRun run_mylos(const std::vector<std::string>& arguments, const std::string& input,
                     const std::filesystem::path& output) {
  return RunningProgram(arguments, input, output).wait();
}

std::optional<ProgramRun> run_on_small_disk(const std::filesystem::path& disk, std::size_t kibibytes,
                                            const std::string& script, const std::vector<std::string>& arguments) {
  std::filesystem::create_directories(disk);
  const auto shell = [&](const std::string& commands, const std::vector<std::string>& more) {
    const std::string mount =
        fmt::format("disk='{}'; mount -t tmpfs -o size={}k none \"$disk\" || exit; ", disk.string(), kibibytes);
    std::vector<std::string> words = {"--mount", "/bin/sh", "-c", mount + commands, "sh"};
    if (::geteuid() != 0) words.insert(words.begin(), "--map-root-user");
    words.insert(words.end(), more.begin(), more.end());
    return RunningProgram(words, "", {}, "/usr/bin/unshare").wait();
  };
  if (!std::filesystem::exists("/usr/bin/unshare") || shell("true", {}).exit_code != 0) return std::nullopt;
  std::vector<std::string> command = {program().string()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return shell(script, command);
}

int open_when_read(const std::filesystem::path& pipe) {
  int descriptor = -1;
  wait_until([&] { return (descriptor = ::open(pipe.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC)) >= 0; });
  return descriptor;
}

}  // namespace mylos::tests
