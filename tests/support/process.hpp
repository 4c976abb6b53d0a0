#pragma once

#include "tests/support/paths.hpp"
#include "tests/support/temporary.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

/// Runs the program as a user would.
namespace mylos::tests {

struct ProgramRun {
  int exit_code = 0;  ///< 128 + the signal if a signal ended it
  std::string output;
  std::string errors;
  std::size_t peak_memory = 0;  ///< peak resident memory in bytes, of this process if that is larger

  /// Returns the lines of standard error.
  std::vector<std::string> error_lines() const;
};

/// Returns `words` and then `more`.
std::vector<std::string> joined(std::vector<std::string> words, const std::vector<std::string>& more);

/// A running mylos process, which can be observed and sent signals.
class RunningProgram {
 public:
  /// Starts mylos, or `program` if it is not empty, with `arguments`.
  explicit RunningProgram(const std::vector<std::string>& arguments, const std::string& input = "",
                          const std::filesystem::path& output = {}, const std::filesystem::path& program = {});
  /// Kills the process if wait() was not called.
  ~RunningProgram();
  RunningProgram(const RunningProgram&) = delete;
  RunningProgram& operator=(const RunningProgram&) = delete;

  void send(int signal) const;
  ProgramRun wait();

 private:
  TemporaryDirectory directory_;  ///< files, not pipes, which could fill up without a reader
  std::filesystem::path output_;
  int process_ = 0;
};

/// Runs mylos with these arguments and `input` on its standard input, and waits for it. Standard output is redirected
/// to `output` if it is given (for example /dev/full), and returned otherwise.
ProgramRun run_mylos(const std::vector<std::string>& arguments, const std::string& input = "",
                     const std::filesystem::path& output = {});

/// Makes file operations of programs that are started during its lifetime fail: `rules` as in file_faults.cpp. Not for
/// builds with a sanitizer of the heap, which has to be loaded first.
class FileFaults {
 public:
  explicit FileFaults(const std::string& rules) : rules_("MYLOS_FILE_FAULTS", rules) {}

 private:
  EnvironmentVariable rules_, library_{"LD_PRELOAD", file_faults_library()};
};

/// Runs mylos with `arguments` from a shell `script`, in which "$@" is the program's command line and $disk is `disk`,
/// the mount point of a private file system of `kibibytes`. Returns nullopt if this user may not mount.
std::optional<ProgramRun> run_on_small_disk(const std::filesystem::path& disk, std::size_t kibibytes,
                                            const std::string& script, const std::vector<std::string>& arguments);

/// Opens a pipe for writing as soon as a process reads from it; returns -1 if none does within a minute.
int open_when_read(const std::filesystem::path& pipe);

}  // namespace mylos::tests
