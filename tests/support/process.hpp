#pragma once

#include "tests/support/temporary.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

/// Runs the program as a user does.
namespace mylos::tests {

struct ProgramRun {
  int exit_code = 0;  ///< 128 + the signal where one ended it
  std::string output;
  std::string errors;
  std::size_t peak_memory = 0;  ///< bytes that were resident at the most, or those of this process if it has more

  /// Lines on standard error.
  std::vector<std::string> error_lines() const;
};

/// mylos at work: what goes on until it ends can be watched, and signals sent.
class RunningProgram {
 public:
  /// The program with `arguments`, or another where `program` names it.
  explicit RunningProgram(const std::vector<std::string>& arguments, const std::string& input = "",
                          const std::filesystem::path& output = {}, const std::filesystem::path& program = {});
  /// Kills it where nobody waited for it.
  ~RunningProgram();
  RunningProgram(const RunningProgram&) = delete;
  RunningProgram& operator=(const RunningProgram&) = delete;

  void send(int signal) const;
  ProgramRun wait();

 private:
  TemporaryDirectory directory_;  ///< files, not pipes: no reader can fall behind
  std::filesystem::path output_;
  int process_ = 0;
};

/// Runs mylos with these arguments and `input` on its standard input, and waits for it. Its standard output goes to
/// `output` where one is named (say, /dev/full), else it is returned.
ProgramRun run_mylos(const std::vector<std::string>& arguments, const std::string& input = "",
                     const std::filesystem::path& output = {});

/// Runs mylos with `arguments` in a shell script that has `disk`, where a file system of `kibibytes` is mounted that
/// nobody else sees, and in which "$@" is the program's command line. Nothing where this user may not mount.
std::optional<ProgramRun> run_on_small_disk(const std::filesystem::path& disk, std::size_t kibibytes,
                                            const std::string& script, const std::vector<std::string>& arguments);

}  // namespace mylos::tests
