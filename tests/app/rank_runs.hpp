#pragma once

#include "core/kernels/products/gemm_providers.hpp"
#include "tests/app/tiny_run.hpp"
#include "tests/support/paths.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace mylos::tests {

/// Returns the program that launches ranks. Empty in a build without MPI.
const std::string& mpiexec();

/// Starts ranks with one thread each. A time limit ends runs that hang.
class RankLauncher {
 protected:
  /// Returns a command that runs one program per rank.
  static std::vector<std::string> launched(const std::vector<std::vector<std::string>>& ranks) {
    std::vector<std::string> words;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      if (i > 0) words.emplace_back(":");
      words.insert(words.end(), {"-n", "1", program()});
      words.insert(words.end(), ranks[i].begin(), ranks[i].end());
    }
    return words;
  }
  static ProgramRun run_on(const std::vector<std::vector<std::string>>& ranks) {
    return RunningProgram(launched(ranks), "", {}, mpiexec()).wait();
  }
  static ProgramRun run_on(std::size_t ranks, const std::vector<std::string>& words) {
    return run_on(std::vector<std::vector<std::string>>(ranks, words));
  }

  EnvironmentVariable root_{"OMPI_ALLOW_RUN_AS_ROOT", "1"}, sure_{"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
      crowded_{"OMPI_MCA_rmaps_base_oversubscribe", "1"}, loose_{"OMPI_MCA_hwloc_base_binding_policy", "none"},
      threads_{"OMP_NUM_THREADS", "1"}, limit_{"MPIEXEC_TIMEOUT", "100"};  // seconds
};

/// A tiny run on several ranks.
class RankRuns : public TinyRun, protected RankLauncher {
 protected:
  using TinyRun::TinyRun;
  void SetUp() override {
    if (mpiexec().empty()) GTEST_SKIP() << "a build without MPI";
    TinyRun::SetUp();
    family_.write_data(dev_);
  }

  std::vector<std::string> train_words(const std::filesystem::path& output,
                                       const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words =
        with_options({"train", "--model", model_, "--train", train_, "--dev", dev_, "--output", output, "--lr", "1e-3",
                      "--gemm", default_gemm_provider()},
                     {});
    if (std::ranges::none_of(more, [](const std::string& word) { return word.starts_with("--batch"); })) {
      words.insert(words.end(), {"--batch", "5"});
    }
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  /// Waits up to a minute for `ranks` processes on this machine that run with `output`, and returns those found.
  static std::vector<int> wait_for_ranks(const std::filesystem::path& output, std::size_t ranks);
  static std::vector<int> processes_of(const std::filesystem::path& output);
  /// Waits up to a minute until the file is not empty.
  static void wait_for_file(const std::filesystem::path& file) { wait_for_size(file, 1); }
  /// Waits up to a minute until the file has at least `bytes`.
  static void wait_for_size(const std::filesystem::path& file, std::uintmax_t bytes);
};

}  // namespace mylos::tests
