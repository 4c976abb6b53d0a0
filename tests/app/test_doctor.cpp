#include "app/doctor/doctor_ranks.hpp"
#include "tests/app/doctor/doctor_report.hpp"
#include "tests/app/tiny_run.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <cerrno>
#include <future>
#include <limits>
#include <map>
#include <memory>
#include <stdexcept>

/// The checks of mylos doctor, one by one, from given facts.
namespace mylos::tests {
namespace {

namespace fs = std::filesystem;
using namespace app;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using Words = std::vector<std::string>;

Processors processors(std::initializer_list<std::size_t> numbers) {
  Processors set;
  for (const std::size_t number : numbers) set.set(number);
  return set;
}

TEST(DoctorFindings, OfRanksThatAreEqualAreOneLine) {
  const Finding same{Level::ok, "limits", "none"}, other{Level::warning, "threads", "8 on 4", "use fewer"};
  const std::vector<Findings> ranks = {{same}, {same, other}, {same}, {same, other}, {same, other}};
  const auto folded = fold({{Level::error, "clock", "of all"}}, ranks);
  EXPECT_EQ(report_text(folded, 5),
            "warning  threads     ranks 1,3-4: 8 on 4; use fewer\n"
            "ok       limits      none\n"
            "error    clock       of all\n"
            "1 error, 1 warning\n");
  EXPECT_EQ(doctor_exit_code(folded), 1);
  EXPECT_EQ(doctor_exit_code(fold({}, ranks)), 0) << "a warning does not fail";
  const json report = report_json(folded, 5, 2);
  EXPECT_EQ(report["ranks"], 5);
  EXPECT_EQ(report["nodes"], 2);
  EXPECT_EQ(report["errors"], 1);
  EXPECT_EQ(report["findings"][0]["ranks"], json({1, 3, 4}));
  EXPECT_EQ(report["findings"][2]["ranks"], json());
}

TEST(DoctorFindings, ValuesAreTheirRange) {
  const auto free = [](double bytes) {
    return Findings{{Level::ok, "memory", "{} free", "", {bytes}, Quantity::bytes}};
  };
  EXPECT_EQ(report_text(fold({}, std::vector<Findings>{free(2048), free(1024), free(1536)}), 3),
            "ok       memory      1.0 KiB to 2.0 KiB free\n0 errors, 0 warnings\n");
  EXPECT_EQ(value_text(2e-6, Quantity::seconds), "2 us");
  EXPECT_EQ(value_text(1.2e9, Quantity::bytes_per_second), "1200 MB/s");
  const Findings original = {{Level::warning, "memory", "{}", "more", {1.5}, Quantity::seconds},
                             {Level::ok, "job", "x"}};
  Picture picture{.first_of_node = {0}, .of_ranks = {{}}, .of_launch = {}};
  picture.take_file_findings(std::vector<std::optional<std::string>>{pack(original)});
  EXPECT_EQ(reported(picture.of_ranks[0]), reported(original));
}

TEST(DoctorFindings, ValuesThatAreNotNumbersAreNotSent) {
  constexpr double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const Findings rates = {{Level::ok, "output", "{}", "", {1e6, infinity, nan, -infinity}, Quantity::bytes_per_second}};
  Picture picture{.first_of_node = {0}, .of_ranks = {{}}, .of_launch = {}};
  picture.take_file_findings(std::vector<std::optional<std::string>>{pack(rates)});
  const RankReport report{.findings = rates, .processors = {}, .device = "", .build = ""};
  picture.take_reports(std::vector<std::optional<std::string>>{pack(report)});
  ASSERT_GE(picture.of_ranks[0].size(), 2u) << "and those of its processors";
  for (const std::size_t i : {0, 1}) EXPECT_EQ(picture.of_ranks[0][i].values, std::vector<double>{1e6});
}

TEST(DoctorChecks, AnExceptionIsAnError) {
  LimitedChecks checks(60.0);
  Findings findings;
  EXPECT_TRUE(checks.run(findings, "cache", "looking", 0.5, []() -> Findings { throw std::runtime_error("no disk"); }));
  EXPECT_THAT(reported(findings), HasSubstr("error    cache       no disk"));
  EXPECT_FALSE(checks.has_left_threads());
}

TEST(DoctorChecks, WhatDoesNotComeBackIsLeft) {
  const auto release = std::make_shared<std::promise<void>>();
  LimitedChecks checks(0.1);
  Findings findings;
  EXPECT_FALSE(checks.run(findings, "cache", "looking at the cache", 0.5, [released = release->get_future().share()] {
    released.wait();
    return Findings();
  }));
  EXPECT_THAT(reported(findings), HasSubstr("looking at the cache did not finish within 0.05 s; a server"));
  EXPECT_TRUE(checks.has_left_threads());
  release->set_value();
}

TEST(DoctorPicture, FindsARankOfAnotherBuild) {
  const auto report_of = [](const char* build) {
    return pack(RankReport{.findings = {{Level::ok, "limits", "none"}},
                           .processors = {.allowed = processors({0, 70}), .cores = 2, .quota = 0.5},
                           .device = "",
                           .build = build});
  };
  Picture picture{.first_of_node = {0, 1, 1}, .of_ranks = std::vector<Findings>(3), .of_launch = {}};
  EXPECT_EQ(picture.nodes(), 2u);
  picture.take_reports(std::vector<std::optional<std::string>>{report_of("1.0"), std::nullopt, report_of("1.1")});
  const std::string text = report_text(fold(picture.of_launch, picture.of_ranks), 3);
  EXPECT_THAT(text, HasSubstr("rank 2 runs a different build from rank 0; start the same program on every node"));
  EXPECT_THAT(text, HasSubstr("ok       limits      ranks 0,2: none")) << "rank 1 did not report";
  EXPECT_THAT(text, HasSubstr("ok       processors  ranks 0,2: 2 processors\n"));
  EXPECT_THAT(text, HasSubstr("has the time of 0.5 processors"));
}

TEST(DoctorPicture, AnOutputIsTriedOnceANode) {
  Picture picture{.first_of_node = {0, 1, 1}, .of_ranks = std::vector<Findings>(3), .of_launch = {}};
  const Findings tried = {{Level::warning, "output", "slow"}, {Level::ok, "shared", "seen"}};
  picture.take_file_findings(std::vector<std::optional<std::string>>{std::nullopt, pack(tried), pack(Findings())});
  EXPECT_TRUE(picture.of_ranks[0].empty());
  EXPECT_EQ(picture.of_ranks[1].size(), 2u);
  ASSERT_EQ(picture.of_ranks[2].size(), 1u);
  EXPECT_EQ(picture.of_ranks[2].front().text, "slow");
}

TEST(DoctorLaunch, KnowsWhoDoesNotBelongTogether) {
  const MpiFacts alone{true, 1, "Open MPI v4.1.4", "MPI_THREAD_MULTIPLE"}, two{true, 2, "MPICH 4.0", ""};
  EXPECT_THAT(reported(launch_findings(alone, variables({{"SLURM_STEP_NUM_TASKS", "4"}}))),
              HasSubstr("SLURM_STEP_NUM_TASKS=4: they do not match; start it with srun --mpi=pmix"));
  EXPECT_THAT(reported(launch_findings(alone, variables({{"OMPI_COMM_WORLD_SIZE", "2"}}))),
              HasSubstr("error    launch"));
  EXPECT_THAT(reported(launch_findings(two, variables({{"PMI_SIZE", "2"}, {"SLURM_NTASKS", "9"}}))),
              HasSubstr("2 ranks, as announced by the launcher"));
  EXPECT_THAT(reported(launch_findings(alone, variables({{"SLURM_JOB_ID", "7"}, {"SLURM_NTASKS", "9"}}))),
              HasSubstr("warning  launch      one process, in a job of 9 tasks; srun mylos doctor"));
  EXPECT_THAT(reported(launch_findings({.is_built = false}, variables({{"PMI_SIZE", "4"}}))),
              HasSubstr("error    launch      this build has no MPI, but the launcher started 4 processes"));
  EXPECT_THAT(reported(launch_findings({.is_built = false}, variables({}))), HasSubstr("0 errors"));
}

TEST(DoctorLaunch, TellsWhichSignalSaves) {
  const MpiFacts two{true, 2, "Open MPI v4.1.4", ""};
  EXPECT_THAT(reported(launch_findings(two, variables({{"OMPI_COMM_WORLD_SIZE", "2"}}))),
              HasSubstr("ok       signals     to save and end a run: send mpirun SIGUSR1"));
  EXPECT_THAT(reported(launch_findings({.is_built = false}, variables({}))),
              HasSubstr("send SIGUSR1, SIGTERM or Ctrl-C;"));
}

TEST(DoctorProcessors, SaysWhetherOtherProgramsUseThem) {
  EXPECT_THAT(reported(load_findings({.others = 2, .processors = 2})), HasSubstr("ok       load"));
  EXPECT_THAT(reported(load_findings({.others = 3, .processors = 2})),
              HasSubstr("warning  load        3 threads of other programs on 2 processors"));
}

TEST(DoctorLaunch, TellsWhatStopBeforeWouldSee) {
  EXPECT_THAT(reported(job_findings(variables({}), {})), HasSubstr("--walltime T"));
  const auto slurm = variables({{"SLURM_JOB_ID", "7"}});
  EXPECT_THAT(reported(job_findings(slurm, 3700.0)), HasSubstr("ok       job         Slurm 7, 1:01:40 left"));
  EXPECT_THAT(reported(job_findings(slurm, {})), HasSubstr("warning  job         Slurm 7, whose end"));
  EXPECT_THAT(reported(job_findings(slurm, std::numeric_limits<double>::infinity())),
              HasSubstr("ok       job         Slurm 7, without a time limit: --stop-before has no effect"));
}

TEST(DoctorLaunch, ClocksAreApartByMoreThanTheyMayBeWrong) {
  EXPECT_EQ(clock_findings({}).size(), 0u);
  const std::vector<ClockOffset> near = {{1, 0.5, 1e-3}, {2, 4.0, 3.5}};
  EXPECT_THAT(reported(clock_findings(near)), HasSubstr("ok       clock"));
  const std::vector<ClockOffset> far = {{1, 0.5, 1e-3}, {2, -90.0, 0.5}};
  EXPECT_THAT(reported(clock_findings(far)), HasSubstr("warning  clock       rank 2 is 90 s behind rank 0"));
}

TEST(DoctorLaunch, ShowsTheVariablesThatMatter) {
  const Words set = {"PATH=/bin", "UCX_TLS=tcp", "NCCL_DEBUG=INFO", "FI_PROVIDER=cxi\n", "OMPI_MCA_orte_x=1"};
  EXPECT_THAT(reported(environment_findings(set)),
              HasSubstr("ok       environment FI_PROVIDER=cxi\\x0a\nok       environment NCCL_DEBUG=INFO\n"));
  const std::vector<Findings> ranks = {environment_findings(Words{"OMP_NUM_THREADS=2", "UCX_TLS=tcp"}),
                                       environment_findings(Words{"OMP_NUM_THREADS=4", "UCX_TLS=tcp"})};
  EXPECT_EQ(report_text(fold({}, ranks), 2),
            "ok       environment rank 0: OMP_NUM_THREADS=2\n"
            "ok       environment UCX_TLS=tcp\n"
            "ok       environment rank 1: OMP_NUM_THREADS=4\n0 errors, 0 warnings\n");
  EXPECT_THAT(reported(environment_findings({})), HasSubstr("no variable"));
}

TEST(DoctorLaunch, SlowExchangesAreWarnedOf) {
  EXPECT_EQ(exchange_findings(1, 1, 1.0, 1.0, 8).size(), 0u);
  EXPECT_THAT(reported(exchange_findings(2, 1, 2e-6, 3e-5, 65536)),
              HasSubstr("ok       MPI         2 ranks on 1 node gather 8 bytes of each in 2 us, 64.0 KiB in 30 us"));
  EXPECT_THAT(reported(exchange_findings(2, 2, 0.02, 0.3, 65536)), HasSubstr("warning  MPI"));
}

TEST(DoctorProcessors, FindTooManyThreads) {
  const auto node = [](ProcessorFacts facts, std::size_t ranks) {
    facts.host = "n1";
    facts.available = processors({0, 1, 2, 3});
    return std::vector<ProcessorFacts>(ranks, facts);
  };
  const auto first = [](const std::vector<ProcessorFacts>& ranks) {
    return reported(processor_findings(ranks).front());
  };
  const ProcessorFacts four{.allowed = processors({0, 1, 2, 3}), .cores = 4};
  EXPECT_THAT(first(node(four, 1)), HasSubstr("4 threads a rank\n0 errors, 0 warnings"));
  EXPECT_THAT(first(node(four, 2)), HasSubstr("2 threads a rank\n0 errors, 0 warnings"));
  ProcessorFacts facts = four;
  facts.asked_threads = 8;
  EXPECT_THAT(first(node(facts, 1)),
              HasSubstr("warning  threads     8 threads on 4 processors; set OMP_NUM_THREADS=4"));
  facts.asked_threads = 3;
  EXPECT_THAT(first(node(facts, 2)),
              HasSubstr("6 threads of 2 ranks on 4 processors of the node; set OMP_NUM_THREADS=2, or start fewer"));
  facts = four;
  facts.cores = 2;
  EXPECT_THAT(first(node(facts, 1)), HasSubstr("warning  threads     4 threads on 2 cores; hardware threads"));
  facts = four;
  facts.quota = 1.5;
  EXPECT_THAT(first(node(facts, 1)), HasSubstr("the control group has the time of 1.5 processors"));
  facts = four;
  facts.binding = "close";
  EXPECT_THAT(first(node(facts, 2)), HasSubstr("warning  threads     OMP_PROC_BIND=close with processors that other"));
  EXPECT_THAT(first(node(facts, 1)), HasSubstr("0 warnings"));
  facts = four;
  facts.threads_error = "OMP_NUM_THREADS=x: expected a number";
  EXPECT_THAT(first(node(facts, 1)), HasSubstr("error    threads     OMP_NUM_THREADS=x"));
}

TEST(DoctorProcessors, FindRanksTiedToOneCore) {
  const std::size_t ranks[] = {2, 3};
  ProcessorFacts tied{.host = "n1", .allowed = processors({0}), .available = processors({0, 1})};
  std::vector<ProcessorFacts> node = {tied, tied};
  EXPECT_THAT(
      reported(pinning_findings(node, ranks)),
      HasSubstr("error    processors  ranks 2, 3 on n1 may run on processor 0 only, while no rank may run on 1; "
                "start the ranks with more processors each"));
  node[0].binding = "true";
  EXPECT_THAT(reported(pinning_findings(node, ranks)), HasSubstr("; unset OMP_PROC_BIND"));
  node[1].allowed = processors({1});
  EXPECT_EQ(pinning_findings(node, ranks).size(), 0u);
}

TEST(DoctorProcessors, CompareInstructions) {
  const Words both = {"avx2", "avx512f"}, older = {"avx2"};
  EXPECT_THAT(reported(instruction_findings(both, both)), HasSubstr("up to avx512f"));
  EXPECT_THAT(reported(instruction_findings(older, both)),
              HasSubstr("the CPU has avx512f, but this build does not use it"));
  EXPECT_EQ(instruction_findings({}, {}).size(), 0u);
}

TEST(DoctorProcessors, SayOnWhichCpusBfloat16IsSlow) {
  if constexpr (!runs_on_host) GTEST_SKIP() << "This build computes on GPUs";
  const Words without = {"avx2", "avx512f"}, with = {"avx2", "avx512f", "avx512bf16"};
  const char* const remark = "the CPU has no instructions for bfloat16: steps take about";
  EXPECT_THAT(reported(instruction_findings(without, without)), HasSubstr(remark));
  EXPECT_THAT(reported(instruction_findings(with, with)), Not(HasSubstr(remark)));
}

TEST(DoctorProcessors, SayWhoChoseTheKernelsOfOpenBlas) {
  EXPECT_EQ(openblas_findings({}).size(), 0u) << "another BLAS";
  EXPECT_THAT(reported(openblas_findings({.kernels = "Zen"})),
              HasSubstr("ok       OpenBLAS    uses its kernels for Zen\n"));
  OpenBlasChoice told{.kernels = "SkylakeX", .of_program = "SkylakeX"};
  EXPECT_THAT(reported(openblas_findings(told)),
              HasSubstr("ok       OpenBLAS    does not recognise this CPU, and was told to use its kernels for "
                        "SkylakeX\n"));
  told.kernels = "Prescott";
  told.better = "SkylakeX";
  EXPECT_THAT(
      reported(openblas_findings(told)),
      HasSubstr("warning  OpenBLAS    does not recognise this CPU, and was told to use its kernels for SkylakeX, "
                "but uses its kernels for Prescott, a CPU without AVX; install a newer OpenBLAS\n"));
  const OpenBlasChoice untold{.kernels = "Prescott", .better = "Haswell"};
  EXPECT_THAT(reported(openblas_findings(untold)),
              HasSubstr("warning  OpenBLAS    does not recognise this CPU, and uses its kernels for Prescott, a CPU "
                        "without AVX; set OPENBLAS_CORETYPE=Haswell\n"));
}

TEST(DoctorProcessors, SayThatTheUserChoseTheKernelsOfOpenBlas) {
  const OpenBlasChoice fast{.kernels = "Haswell", .of_user = "HASWELL"};
  EXPECT_THAT(
      reported(openblas_findings(fast)),
      HasSubstr("ok       OpenBLAS    uses its kernels for Haswell, because OPENBLAS_CORETYPE=HASWELL is set\n"));
  const OpenBlasChoice slow{.kernels = "Prescott", .of_user = "Pre\nscott", .better = "SkylakeX"};
  EXPECT_THAT(reported(openblas_findings(slow)),
              HasSubstr("warning  OpenBLAS    uses its kernels for Prescott, a CPU without AVX, because "
                        "OPENBLAS_CORETYPE=Pre\\x0ascott is set; unset it, or set it to SkylakeX\n"));
}

TEST(DoctorSystem, MemoryAndLimits) {
  constexpr std::size_t gib = std::size_t{1} << 30;
  const std::string little = reported(memory_findings({4 * gib, 4, 1 << 20, "always [madvise] never"}));
  EXPECT_THAT(little, HasSubstr("/dev/shm, through which MPI and NCCL communicate inside a node, has 1.00 MiB free"));
  if (runs_on_host) {
    EXPECT_THAT(little, HasSubstr("warning  memory      1.00 GiB are free for each of 4 ranks"));
    EXPECT_THAT(little, HasSubstr("transparent huge pages: madvise"));
  }
  EXPECT_THAT(reported(memory_findings({64 * gib, 1, 0, ""})), HasSubstr("0 warnings"));
  const auto limits = [](std::map<int, rlim_t> set, bool has_infiniband) {
    set.emplace(RLIMIT_CORE, 0);
    const auto limit_of = [&](int resource) { return set.contains(resource) ? set.at(resource) : RLIM_INFINITY; };
    return reported(limit_findings(limit_of, has_infiniband));
  };
  EXPECT_EQ(limits({}, true), "ok       limits      no core files (ulimit -c)\n0 errors, 0 warnings\n");
  const std::string all = limits({{RLIMIT_AS, gib},
                                  {RLIMIT_MEMLOCK, 65536},
                                  {RLIMIT_NOFILE, 256},
                                  {RLIMIT_STACK, 65536},
                                  {RLIMIT_FSIZE, 1 << 20},
                                  {RLIMIT_CORE, RLIM_INFINITY}},
                                 true);
  for (const char* option : {"ulimit -v", "ulimit -l", "ulimit -n", "ulimit -s", "ulimit -f"}) {
    EXPECT_THAT(all, HasSubstr(option));
  }
  EXPECT_THAT(all, HasSubstr("writes a core file"));
  EXPECT_THAT(limits({{RLIMIT_MEMLOCK, 65536}}, false), HasSubstr("0 warnings")) << "no InfiniBand";
  EXPECT_THAT(reported(hdf5_findings("1.14.0", true)), HasSubstr("1.14.0, parallel\n"));
  EXPECT_THAT(reported(hdf5_findings("1.10.8", false)), HasSubstr("1.10.8, not parallel"));
}

TEST(DoctorSystem, CachesAndModels) {
  const TemporaryDirectory directory;
  {
    const EnvironmentVariable cache("XDG_CACHE_HOME", (directory / "new" / "cache").string());
    EXPECT_THAT(reported(cache_findings()), HasSubstr("ok       cache"));
  }
  const EnvironmentVariable none("XDG_CACHE_HOME", ""), homeless("HOME", "");
  EXPECT_THAT(reported(cache_findings()), HasSubstr("warning  cache       neither XDG_CACHE_HOME nor HOME is set"));
  const EnvironmentVariable closed("XDG_CACHE_HOME", "/proc/cache");
  EXPECT_THAT(reported(cache_findings()), HasSubstr("warning  cache       /proc/cache/mylos cannot be written"));
  EXPECT_THAT(reported(model_findings("/no/model")), HasSubstr("error    model       no directory /no/model"));
  EXPECT_EQ(model_findings("").size(), 0u);
}

TEST(DoctorFiles, KnowFileSystemsByTheirNumber) {
  EXPECT_EQ(file_system_kind(0x6969).name, "NFS");
  EXPECT_EQ(file_system_kind(0x0BD00BD0).name, "Lustre");
  EXPECT_EQ(file_system_kind(0x01021994).level, Level::warning);
  EXPECT_EQ(file_system_kind(1).level, Level::ok);
}

TEST(DoctorFiles, SayHowLustreSpreadsFilesOverServers) {
  const auto told_with = [&](const std::string& lines) {
    const StandInProgram lfs("lfs", "test \"$*\" = 'getstripe -d /scratch/run' || exit 2\n" + lines);
    return reported(striping_findings("/scratch/run"));
  };
  EXPECT_THAT(told_with("echo 'stripe_count:  8 stripe_size:   4194304 pattern: raid0 stripe_offset: -1'\n"),
              HasSubstr("ok       striping    files are spread over 8 servers, in stripes of 4.00 MiB"));
  EXPECT_THAT(told_with("echo 'stripe_count:  -1 stripe_size:   1048576'\n"), HasSubstr("over all servers"));
  const std::string one = told_with("echo 'stripe_count:  1 stripe_size:   1048576'\n");
  EXPECT_THAT(one, HasSubstr("warning  striping    files are spread over 1 server, in stripes of 1.00 MiB"));
  EXPECT_THAT(one, HasSubstr("lfs setstripe -c 4 -S 4M"));
  EXPECT_THAT(told_with("echo 'error: not on a Lustre filesystem' >&2; exit 1\n"),
              HasSubstr("ok       striping    unknown: error: not on a Lustre filesystem"));
}

TEST(DoctorFiles, SayWhyAFolderDoesNotServe) {
  EXPECT_THAT(reported(trial_findings({.failed = "write", .error = EDQUOT})), HasSubstr("your quota is used up"));
  EXPECT_THAT(reported(trial_findings({.failed = "make a file", .error = EROFS})),
              HasSubstr("compute nodes may write"));
  EXPECT_THAT(reported(trial_findings({.seconds = 4.0})), HasSubstr("warning  output"));
  const std::string unlocked = reported(trial_findings({.lock_error = ENOLCK, .seconds = 1e-3}));
  EXPECT_THAT(unlocked, HasSubstr("do not let two runs write to the same directory\n0 errors, 1 warning"));
  EXPECT_THAT(reported(space_findings(1ull << 30, true)), HasSubstr("warning  output      1.00 GiB are free; a run"));
  EXPECT_THAT(reported(space_findings(1ull << 40, false)), HasSubstr("error    output      no more files"));
  EXPECT_THAT(reported(directory_findings("/no/such")), HasSubstr("error    output      /no/such: No such file"));
}

TEST(DoctorFiles, ATrialLeavesNothing) {
  const TemporaryDirectory directory;
  const Trial trial = try_directory(directory.path());
  EXPECT_EQ(trial.failed, "") << trial.error;
  EXPECT_GT(trial.seconds, 0.0);
  EXPECT_TRUE(fs::is_empty(directory.path()));
  EXPECT_EQ(try_directory("/proc").failed, "make a file");
  const std::string probe = write_probe(directory.path());
  EXPECT_THAT(reported(probe_findings(directory.path(), probe, "n1", 0.0)), HasSubstr("ok       shared"));
  const TemporaryDirectory other;
  EXPECT_THAT(reported(probe_findings(other.path(), probe, "n1", 0.0)),
              HasSubstr("does not show a file that n1 wrote 0 s ago; nodes see different directories"));
  remove_scraps();
  EXPECT_TRUE(fs::is_empty(directory.path()));
}

TEST(DoctorFiles, AreRemovedOnce) {
  const TemporaryDirectory directory;
  EXPECT_EQ(try_directory(directory.path()).failed, "");
  const std::string probe = write_probe(directory.path());
  remove_scraps();
  std::vector<fs::path> others;
  for (const char* name : {"shared", "trial", "renamed"}) {
    others.push_back(directory / std::string(probe).replace(probe.find("shared"), 6, name));
    write_file(others.back(), "of another program");
  }
  remove_scraps();
  for (const fs::path& other : others) EXPECT_TRUE(fs::exists(other)) << other;
}

TEST(DoctorFiles, FindWhereTheOutputWouldGo) {
  const TemporaryDirectory directory;
  EXPECT_EQ(find_output(directory.path()).directory, directory.path());
  EXPECT_EQ(reported(find_output(directory.path()).findings), "0 errors, 0 warnings\n");
  const OutputTarget above = find_output(directory / "a" / "b");
  EXPECT_EQ(above.directory, directory.path());
  EXPECT_THAT(reported(above.findings),
              HasSubstr("a/b does not exist yet; " + directory.path().string() + " is tested instead"));
  const fs::path file = directory / "file", dangling = directory / "dangling", link = directory / "link";
  write_file(file, "");
  fs::create_symlink(directory / "nowhere", dangling);
  fs::create_directory(directory / "real");
  fs::create_symlink(directory / "real", link);
  for (const fs::path& wanted : {file, file / "sub", dangling, dangling / "sub"}) {
    const OutputTarget none = find_output(wanted);
    EXPECT_EQ(none.directory, "") << wanted;
    EXPECT_THAT(reported(none.findings), AllOf(HasSubstr("error    output"), HasSubstr(" is not a directory")));
  }
  EXPECT_EQ(find_output(link / "sub").directory, link);
}

}  // namespace
}  // namespace mylos::tests
