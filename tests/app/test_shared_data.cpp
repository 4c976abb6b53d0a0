#include "tests/app/rank_runs.hpp"
#include "tests/support/sanitized.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/types.h>

#include <cerrno>
#include <csignal>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

/// The memory in which the ranks of a run keep large data sets.
namespace mylos::tests {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;
using Words = std::vector<std::string>;

/// A mapping of shared memory in a process.
struct Mapping {
  std::string access;  ///< "r--s"
  std::string file;    ///< number of its file

  auto operator<=>(const Mapping&) const = default;
};

std::set<Mapping> shared_mappings(const std::string& process) {
  std::set<Mapping> mappings;
  std::istringstream lines(read_file("/proc/" + process + "/maps"));
  for (std::string line; std::getline(lines, line);) {
    if (line.find("/memfd:mylos-data") == std::string::npos) continue;
    std::istringstream columns(line);
    Mapping mapping;
    std::string skipped;
    columns >> skipped >> mapping.access >> skipped >> skipped >> mapping.file;
    mappings.insert(mapping);
  }
  return mappings;
}

/// A run whose training data has several arrays that are large enough to be shared, and whose evaluation data has none.
class SharedData : public RankRuns {
 protected:
  SharedData() : RankRuns(llama_family()) {}
  void SetUp() override {
    RankRuns::SetUp();
    if (HasFatalFailure() || IsSkipped()) return;
    write_file(train_, tiny_documents(10'000, 20));
  }

  /// Returns the mappings of each process of the program that runs with run_.
  std::map<std::string, std::set<Mapping>> mappings_of_ranks() const {
    std::map<std::string, std::set<Mapping>> mappings;
    for (const auto& entry : fs::directory_iterator("/proc")) {
      const std::string process = entry.path().filename().string();
      if (process.find_first_not_of("0123456789") != std::string::npos) continue;
      try {
        const std::string words = read_file(entry.path() / "cmdline");
        if (!words.starts_with(program().string()) || words.find(run_.string() + '\0') == std::string::npos) continue;
        mappings[process] = shared_mappings(process);
      } catch (const std::exception&) {  // it has just ended
      }
    }
    return mappings;
  }
};

TEST_F(SharedData, AreHeldOnceByTheRanksOfANode) {
  RunningProgram running(launched(std::vector<Words>(3, train_words(run_, {"--steps", "1000000"}))), "", {}, mpiexec());
  await_metrics(run_);
  const auto mappings = mappings_of_ranks();
  running.send(SIGUSR1);
  const ProgramRun run = running.wait();
  EXPECT_EQ(run.exit_code, 85) << run.errors;
  EXPECT_THAT(run.errors, Not(HasSubstr("cannot share memory")));
  ASSERT_EQ(mappings.size(), 3u);
  const std::set<Mapping>& first = mappings.begin()->second;
  EXPECT_EQ(first.size(), 4u) << "ids, starts, documents and lines";
  for (const auto& [process, of_rank] : mappings) {
    EXPECT_TRUE(of_rank == first) << process;
    for (const Mapping& mapping : of_rank) EXPECT_EQ(mapping.access, "r--s") << "nobody can change it";
  }
}

TEST_F(SharedData, AreCopiesWhereMemoryCannotBeShared) {
  if (heap_is_sanitized) GTEST_SKIP() << "the sanitizer wants to be loaded first";
  const Words more = {"--steps", "2", "--deterministic"};
  const fs::path alone = directory_ / "alone";
  const ProgramRun one = run_mylos(train_words(alone, more));
  ASSERT_EQ(one.exit_code, 0) << one.errors;
  const FileFaults no_space(fmt::format("allocate:{}:/memfd:mylos-data", ENOSPC));
  const ProgramRun run = run_on(2, train_words(run_, more));
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  const std::string line = "on 1 of 1 node, ranks cannot share memory, so each has a copy of the data: cannot reserve";
  EXPECT_THAT(run.errors, HasSubstr(line));
  EXPECT_EQ(run.errors.find(line), run.errors.rfind(line)) << "in one line";
  const auto rows = metrics_of(run_), expected = metrics_of(alone);
  ASSERT_EQ(rows.size(), expected.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].value("loss", 0.0), expected[i].value("loss", 0.0)) << i;
  }
}

}  // namespace
}  // namespace mylos::tests
