#include "parallel/launch/launcher.hpp"

#include "tests/support/temporary.hpp"

#include <gmock/gmock.h>

#include <map>
#include <string_view>
#include <utility>

namespace mylos::parallel {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;
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

TEST(Launcher, ABuildWithoutMpiSaysSo) {
  const Environment environment = [](const char* name) { return std::string_view(name) == "PMI_SIZE" ? "4" : nullptr; };
  EXPECT_THAT(tests::error_of([&] { check_launcher(1, std::string(no_mpi), environment); }),
              AllOf(StartsWith("this build has no MPI"), HasSubstr("PMI_SIZE=4"), HasSubstr("-DMYLOS_ENABLE_MPI=ON")));
}

TEST(Launcher, TheSizeOfAnAllocationSaysNothing) { EXPECT_EQ(check(1, {{"SLURM_NTASKS", "8"}}), nothing); }

TEST(Launcher, StepsCountOnlyWhereNoLauncherOfMpiTells) {
  // mpirun in a job step that srun created for it.
  EXPECT_EQ(check(4, {{"OMPI_COMM_WORLD_SIZE", "4"}, {"SLURM_STEP_NUM_TASKS", "1"}}), nothing);
  EXPECT_EQ(check(4, {{"OMPI_COMM_WORLD_SIZE", "4"}, {"PMI_SIZE", "1"}}), nothing);
  EXPECT_EQ(check(2, {{"PALS_RANKID", "1"}, {"SLURM_STEP_NUM_TASKS", "1"}}), nothing);
  EXPECT_THAT(check(1, {{"PMI_SIZE", "4"}, {"SLURM_STEP_NUM_TASKS", "1"}}), HasSubstr("PMI_SIZE=4"));
}

TEST(Launcher, KnowsWhetherOneStartedThisProcess) {
  const auto launched = [](const char* set) {
    return is_launched([&](const char* name) { return std::string_view(name) == set ? "1" : nullptr; });
  };
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_NAMESPACE", "HYDI_CONTROL_FD",
                           "SLURM_STEP_NUM_TASKS", "PALS_RANKID"}) {
    EXPECT_TRUE(launched(name)) << name;
  }
  for (const char* name : {"HOME", "SLURM_NTASKS", "PBS_JOBID"}) EXPECT_FALSE(launched(name)) << name;
}

TEST(Launcher, NamesTheBatchJobAndItsNode) {
  const auto environment = [](Variables variables) -> Environment {
    return [variables = std::move(variables)](const char* name) -> const char* {
      const auto found = variables.find(name);
      return found == variables.end() ? nullptr : found->second.c_str();
    };
  };
  EXPECT_EQ(batch_job(environment({})), "");
  EXPECT_EQ(batch_job(environment({{"SLURM_JOB_ID", "12"}, {"SLURM_RESTART_COUNT", "0"}})), "Slurm 12");
  EXPECT_EQ(batch_job(environment({{"SLURM_JOB_ID", "12"},
                                   {"SLURM_ARRAY_JOB_ID", "10"},
                                   {"SLURM_ARRAY_TASK_ID", "3"},
                                   {"SLURM_RESTART_COUNT", "1"},
                                   {"PBS_JOBID", "12"}})),
            "Slurm 12, task 3 of array 10, start 2");
  EXPECT_EQ(batch_job(environment({{"PBS_JOBID", "7.server"}})), "PBS 7.server");
  EXPECT_EQ(node_name(environment({{"SLURMD_NODENAME", "n1"}}), "host.site"), "n1");
  EXPECT_EQ(node_name(environment({{"SLURMD_NODENAME", ""}}), "host.site"), "host.site");
}

TEST(Launcher, TellsRanksAndTheirNumberBeforeMpiBegins) {
  const auto reported = [](const Variables& variables) {
    const Environment environment = [&](const char* name) -> const char* {
      const auto found = variables.find(name);
      return found == variables.end() ? nullptr : found->second.c_str();
    };
    return std::pair(launched_rank(environment), launched_ranks(environment));
  };
  using Told = std::pair<std::size_t, std::size_t>;
  EXPECT_EQ(reported({}), Told(0, 1));
  EXPECT_EQ(reported({{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "4"}}), Told(2, 4));
  EXPECT_EQ(reported({{"PMI_RANK", "1"}, {"PMI_SIZE", "3"}}), Told(1, 3));
  EXPECT_EQ(reported({{"PALS_RANKID", "5"}}), Told(5, 6));
  EXPECT_EQ(reported({{"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "2"}}), Told(1, 2));
  EXPECT_EQ(reported({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}), Told(0, 1)) << "an allocation, not a step";
}

TEST(Launcher, TellsTheRanksOfThisNodeBeforeMpiBegins) {
  const auto reported = [](const Variables& variables) {
    return launched_ranks_of_node([&](const char* name) -> const char* {
      const auto found = variables.find(name);
      return found == variables.end() ? nullptr : found->second.c_str();
    });
  };
  EXPECT_EQ(reported({}), 1u);
  EXPECT_EQ(reported({{"OMPI_COMM_WORLD_SIZE", "8"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}}), 4u);
  EXPECT_EQ(reported({{"PMI_SIZE", "8"}, {"MPI_LOCALNRANKS", "2"}}), 2u);
}

TEST(Launcher, SaysHowARunIsMadeToSaveAndEnd) {
  struct {
    Variables variables;
    LauncherKind kind;
    const char *advice, *notice;
  } const cases[] = {
      {{}, LauncherKind::none, "send SIGUSR1, SIGTERM or Ctrl-C;", ""},
      {{{"OMPI_COMM_WORLD_SIZE", "2"}},
       LauncherKind::open_mpi,
       "send mpirun SIGUSR1",
       "kills its ranks 1 s after SIGTERM"},
      {{{"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_MCA_odls_base_sigkill_timeout", "30"}},
       LauncherKind::open_mpi,
       "kills its ranks, 30 s after",
       "kills its ranks 30 s after SIGTERM"},
      {{{"OMPI_COMM_WORLD_SIZE", "2"}, {"PRTE_LAUNCHED", "1"}, {"OMPI_MCA_odls_base_sigkill_timeout", "30"}},
       LauncherKind::open_mpi,
       "kills its ranks, 0.25 s after",
       "send SIGUSR1 to mpirun"},
      {{{"OMPI_COMM_WORLD_SIZE", "2"}, {"PMIX_NAMESPACE", "slurm.pmix.5.0"}, {"SLURM_STEP_NUM_TASKS", "2"}},
       LauncherKind::slurm,
       "scancel --signal=USR1",
       ""},
      {{{"PMI_SIZE", "2"}, {"HYDI_CONTROL_FD", "7"}}, LauncherKind::hydra, "SIGUSR1, SIGTERM or Ctrl-C", ""},
      {{{"PMI_SIZE", "2"}, {"SLURM_STEP_NUM_TASKS", "2"}}, LauncherKind::slurm, "KillWait", ""},
      {{{"PALS_RANKID", "0"}}, LauncherKind::pals, "send mpiexec SIGUSR1", ""},
  };
  for (const auto& each : cases) {
    const Environment environment = [&](const char* name) -> const char* {
      const auto found = each.variables.find(name);
      return found == each.variables.end() ? nullptr : found->second.c_str();
    };
    EXPECT_EQ(launcher_kind(environment), each.kind) << each.advice;
    EXPECT_THAT(stop_advice(environment), HasSubstr(each.advice));
    EXPECT_THAT(termination_notice(environment), HasSubstr(each.notice));
    EXPECT_EQ(termination_notice(environment).empty(), each.kind != LauncherKind::open_mpi) << each.advice;
  }
}

TEST(Launcher, WhatIsNoNumberIsLeftAlone) { EXPECT_EQ(check(1, {{"PMI_SIZE", "many"}}), nothing); }

}  // namespace
}  // namespace mylos::parallel
