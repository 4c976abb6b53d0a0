#include "tests/support/tensorboard.hpp"

#include "tests/support/paths.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temporary.hpp"

#include <cstdlib>
#include <stdexcept>
#include <vector>

namespace mylos::tests {
namespace {

/// Runs python3 with the packages.
ProgramRun run_python(std::vector<std::string> words) {
  const char* given = std::getenv("MYLOS_TENSORBOARD");
  const EnvironmentVariable packages("PYTHONPATH", given != nullptr ? given : MYLOS_TENSORBOARD_PACKAGES);
  words.insert(words.begin(), "python3");
  return RunningProgram(words, "", {}, "/usr/bin/env").wait();
}

}  // namespace

std::string tensorboard_obstacle() {
  const ProgramRun run = run_python({"-c", "import tensorboard.plugins.hparams.api_pb2"});
  return run.exit_code == 0 ? "" : "python3 has no tensorboard: scripts/dependencies --test gets it";
}

std::string tensorboard_reads(const std::filesystem::path& directory) {
  const ProgramRun run = run_python({source_dir() / "tests" / "support" / "read_events.py", directory});
  if (run.exit_code != 0) throw std::runtime_error("tests/support/read_events.py: " + run.errors);
  return run.output;
}

}  // namespace mylos::tests
