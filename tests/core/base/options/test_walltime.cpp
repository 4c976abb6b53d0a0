#include "core/base/options/walltime.hpp"

#include "tests/support/temporary.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace mylos {
namespace {

using tests::EnvironmentVariable;

constexpr double without_limit = std::numeric_limits<double>::infinity();

const RunProgram nothing = [](const std::vector<std::string>&) { return std::optional<std::string>(); };

RunProgram answers(const std::string& program, const std::string& output) {
  return [=](const std::vector<std::string>& words) {
    return words.front() == program ? std::optional(output) : std::nullopt;
  };
}

/// Clears all schedulers' variables, whatever started the test.
class Walltime : public testing::Test {
 protected:
  EnvironmentVariable slurm_{"SLURM_JOB_ID", ""}, end_{"SLURM_JOB_END_TIME", ""}, pbs_{"PBS_JOBID", ""};
};

TEST_F(Walltime, IsReadAsSchedulersWriteIt) {
  EXPECT_EQ(parse_walltime("3:04"), 184.0);
  EXPECT_EQ(parse_walltime("2:03:04"), 7384.0);
  EXPECT_EQ(parse_walltime("1-02:03:04"), 93784.0);
  EXPECT_EQ(parse_walltime("1-02:03"), 93780.0);
  EXPECT_EQ(parse_walltime("1-12"), 129600.0);
  for (const char* text : {"", "UNLIMITED", "INVALID", "NOT_SET", "12", "1:2:3:4", "1-", "a:10", "1:-2"}) {
    EXPECT_FALSE(parse_walltime(text).has_value()) << text;
  }
}

TEST_F(Walltime, IsUnknownOutsideAJob) { EXPECT_FALSE(remaining_walltime(0.0, answers("squeue", "1:00")).has_value()); }

TEST_F(Walltime, IsSlurmsEndTimeOrWhatSqueueSays) {
  const EnvironmentVariable job("SLURM_JOB_ID", "17");
  EXPECT_EQ(remaining_walltime(0.0, answers("squeue", "5:00\n")), 300.0);
  EXPECT_EQ(remaining_walltime(0.0, answers("squeue", "UNLIMITED\n")), without_limit);
  EXPECT_FALSE(remaining_walltime(0.0, answers("squeue", "NOT_SET\n")).has_value());
  EXPECT_FALSE(remaining_walltime(0.0, nothing).has_value());
  const EnvironmentVariable end("SLURM_JOB_END_TIME", "1000");
  EXPECT_EQ(remaining_walltime(400.0, nothing), 600.0);
}

TEST_F(Walltime, IsWhatQstatSays) {
  const EnvironmentVariable job("PBS_JOBID", "17.server");
  const std::string text =
      "Job Id: 17.server\n    resources_used.walltime = 00:10:00\n    Resource_List.walltime = 01:00:00\n";
  EXPECT_EQ(remaining_walltime(0.0, answers("qstat", text)), 3000.0);
  EXPECT_EQ(remaining_walltime(0.0, answers("qstat", "Job Id: 17.server\n    job_state = R\n")), without_limit);
  for (const char* unclear : {"", "Job Id: 17.server\n    Resource_List.walltime = soon\n"}) {
    EXPECT_FALSE(remaining_walltime(0.0, answers("qstat", unclear)).has_value()) << unclear;
  }
}

}  // namespace
}  // namespace mylos
