#include "parallel/launcher.hpp"

#include "tests/support/temporary.hpp"

#include <gmock/gmock.h>

#include <map>

namespace mylos::parallel {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

std::string check(std::size_t ranks, const Variables& variables) {
  return tests::error_of([&] {
    check_launcher(ranks, "Open MPI v4.1.4", [&](const char* name) -> const char* {
      const auto found = variables.find(name);
      return found == variables.end() ? nullptr : found->second.c_str();
    });
  });
}

const std::string nothing = "(nothing was thrown)";

TEST(Launcher, SizesThatAgreePass) {
  EXPECT_EQ(check(1, {}), nothing);
  EXPECT_EQ(check(4, {{"OMPI_COMM_WORLD_SIZE", "4"}}), nothing);
  EXPECT_EQ(check(4, {{"PMI_SIZE", "4"}}), nothing);
  EXPECT_EQ(check(4, {{"PALS_RANKID", "3"}}), nothing);
  EXPECT_EQ(check(4, {{"SLURM_STEP_NUM_TASKS", "4"}}), nothing);
}

TEST(Launcher, RanksThatAreAloneThoughSeveralWereStartedAreTold) {
  for (const Variables& variables : {Variables{{"OMPI_COMM_WORLD_SIZE", "4"}}, Variables{{"PMI_SIZE", "4"}},
                                     Variables{{"SLURM_STEP_NUM_TASKS", "4"}}, Variables{{"PALS_RANKID", "1"}}}) {
    const auto& [name, value] = *variables.begin();
    EXPECT_THAT(check(1, variables), AllOf(HasSubstr("Open MPI v4.1.4"), HasSubstr("sees 1 rank,"),
                                           HasSubstr(name + "=" + value), HasSubstr("--mpi=list")));
  }
}

TEST(Launcher, TheSizeOfAnAllocationSaysNothing) { EXPECT_EQ(check(1, {{"SLURM_NTASKS", "8"}}), nothing); }

TEST(Launcher, StepsCountOnlyWhereNoLauncherOfMpiTells) {
  // mpirun in a job step that srun made for it.
  EXPECT_EQ(check(4, {{"OMPI_COMM_WORLD_SIZE", "4"}, {"SLURM_STEP_NUM_TASKS", "1"}}), nothing);
  EXPECT_EQ(check(4, {{"OMPI_COMM_WORLD_SIZE", "4"}, {"PMI_SIZE", "1"}}), nothing);
  EXPECT_EQ(check(2, {{"PALS_RANKID", "1"}, {"SLURM_STEP_NUM_TASKS", "1"}}), nothing);
  EXPECT_THAT(check(1, {{"PMI_SIZE", "4"}, {"SLURM_STEP_NUM_TASKS", "1"}}), HasSubstr("PMI_SIZE=4"));
}

TEST(Launcher, WhatIsNoNumberIsLeftAlone) { EXPECT_EQ(check(1, {{"PMI_SIZE", "many"}}), nothing); }

}  // namespace
}  // namespace mylos::parallel
