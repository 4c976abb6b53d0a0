#include "core/base/files/files.hpp"
#include "families/model_directory.hpp"
#include "parallel/checkpoint/checkpoint_directory.hpp"
#include "tests/app/family.hpp"
#include "tests/app/rank_runs.hpp"
#include "tests/support/gemm_provider.hpp"
#include "tests/support/ranks.hpp"
#include "tests/support/sanitized.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <thread>

/// Ranks that are killed, stopped or rejected during a run: the run ends, reports the lost rank, and resumes from its
/// last checkpoint with the same results. MYLOS_FAULT_ROUNDS is the number of repetitions, each at a different time.
namespace mylos::tests {
namespace {

namespace fs = std::filesystem;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;
using Clock = std::chrono::steady_clock;

std::size_t rounds() {
  const char* text = std::getenv("MYLOS_FAULT_ROUNDS");
  return text == nullptr ? 2 : std::strtoul(text, nullptr, 10);
}

/// True if the launcher is Open MPI's, the only one that does not forward every signal.
bool is_open_mpi() {
  const std::string version = launcher_version();
  return version.find("Open MPI") != std::string::npos || version.find("OpenRTE") != std::string::npos;
}

class Faults : public RankRuns {
 protected:
  using RankRuns::RankRuns;
  static constexpr std::size_t ranks = 2;

  void SetUp() override { RankRuns::SetUp(); }

  Words words(const fs::path& output, const Words& more = {}) const {
    Words all = joined(with_noise({"--steps", "60", "--mode", "sharded", "--eval-every", "1000", "--keep", "2"}), more);
    return train_words(output, all);
  }

  /// Starts a run and kills a rank with SIGKILL after a fraction of a whole run's time. The other rank is killed by
  /// mpirun or, with `names_it`, ends the run itself.
  void run_and_kill(const Words& run_words, const fs::path& output, double part, bool names_it, std::mt19937& random) {
    std::optional<OthersSurvive> others;
    if (names_it) others.emplace();
    RunningProgram running(launched(std::vector<Words>(ranks, run_words)), "", {}, mpiexec());
    const std::vector<int> processes = wait_for_ranks(output, ranks);
    ASSERT_EQ(processes.size(), ranks);
    wait_for_file(output / "metrics.jsonl");
    std::this_thread::sleep_for(std::chrono::duration<double>(part * whole_seconds_));
    const std::size_t victim = random() % ranks;
    if (::kill(processes[victim], SIGKILL) != 0) return;  // it has ended
    const ProgramRun run = running.wait();
    EXPECT_TRUE(processes_of(output).empty()) << "a rank is left";
    if (fs::exists(output / "last")) return;  // it was about to finish
    if (!names_it) {
      EXPECT_NE(run.exit_code, 0);
      return;
    }
    EXPECT_THAT(run.errors, ::testing::ContainsRegex(fmt::format("mylos: error: rank {} \\(process {}\\) on .* is gone",
                                                                 victim, processes[victim])));
  }

  /// Runs under mpirun and signals mpirun after the run's first step.
  ProgramRun run_and_signal(const Words& run_words, int signal) {
    std::error_code none;
    const fs::path metrics = run_ / "metrics.jsonl";
    const std::uintmax_t before = fs::exists(metrics) ? fs::file_size(metrics, none) : 0;
    RunningProgram running(launched(std::vector<Words>(ranks, run_words)), "", {}, mpiexec());
    wait_for_size(metrics, before + 1);
    running.send(signal);
    return running.wait();
  }

  std::size_t unfinished_files() const {
    const auto is_unfinished = [](const fs::directory_entry& entry) { return entry.path().extension() == ".tmp"; };
    return static_cast<std::size_t>(std::ranges::count_if(fs::directory_iterator(run_ / "checkpoints"), is_unfinished));
  }

  double whole_seconds_ = 0.0;
};

std::size_t count(const std::string& text, const std::string& words) {
  std::size_t found = 0;
  for (std::size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1)) ++found;
  return found;
}

/// Returns the losses of the steps as text, which is equal only if the bits are.
std::vector<std::string> losses_of(const fs::path& output) {
  std::vector<std::string> losses;
  for (const auto& row : metrics_of(output, "loss")) losses.push_back(row["step"].dump() + " " + row["loss"].dump());
  return losses;
}

TEST_F(Faults, AKilledRankLosesNothing) {
  std::mt19937 random(std::random_device{}());
  for (const char* every : {"7", "1"}) {  // in training, and mostly in the middle of a save
    const bool saves_rarely = every[0] == '7';
    const fs::path whole = directory_ / (std::string("whole") + every);
    const Clock::time_point begin = Clock::now();
    const ProgramRun reference = run_on(ranks, words(whole, {"--checkpoint-every", every}));
    ASSERT_EQ(reference.exit_code, 0) << reference.errors;
    whole_seconds_ = std::chrono::duration<double>(Clock::now() - begin).count();
    for (std::size_t round = 0; round < (rounds() + 1) / 2; ++round) {
      const fs::path output = directory_ / "killed";
      const Words run_words = words(output, {"--checkpoint-every", every});
      const double part = std::uniform_real_distribution<double>(0.0, 0.6)(random);
      const bool names_it = (round % 2 == 0) == saves_rarely && OthersSurvive::is_possible();
      SCOPED_TRACE("killed after " + std::to_string(part) + " of a run, checkpoints every " + every);
      run_and_kill(run_words, output, part, names_it, random);
      // Like a requeued job: resume from the last checkpoint, or start again if there is none yet.
      const EnvironmentVariable requeued("SLURM_RESTART_COUNT", "1");
      Words again_words = run_words;
      again_words.emplace_back("--overwrite");
      const ProgramRun again = run_on(ranks, again_words);
      ASSERT_EQ(again.exit_code, 0) << again.errors;
      EXPECT_EQ(losses_of(output), losses_of(whole));
      EXPECT_EQ(read_file(output / "last" / "model.safetensors"), read_file(whole / "last" / "model.safetensors"));
      for (const auto& entry : fs::directory_iterator(output / "checkpoints")) {
        EXPECT_NE(entry.path().extension(), ".tmp") << "a stale file stays";
      }
      fs::remove_all(output);
    }
  }
}

/// Every how many of its file calls a run is killed: 1 in scripts/test-faults, otherwise `usual`.
std::size_t stride_of_kills(std::size_t usual) {
  const char* text = std::getenv("MYLOS_FAULT_STRIDE");
  return text == nullptr ? usual : std::strtoul(text, nullptr, 10);
}

/// A run with evaluations, exports and pruned checkpoints, killed by a preloaded library at a file call.
class KilledAtFileCalls : public Faults {
 protected:
  void SetUp() override {
    if (heap_is_sanitized) GTEST_SKIP() << "the sanitizer wants to be loaded first";
    Faults::SetUp();
  }

  Words short_words(const fs::path& output) const {
    return train_words(output, with_noise({"--steps", "5", "--mode", "sharded", "--checkpoint-every", "2",
                                           "--eval-every", "3", "--keep", "1"}));
  }
  /// Runs on some ranks; `rule` of file_faults.cpp applies to the rank `victim`.
  static ProgramRun run_with(const std::string& rule, std::size_t victim, std::size_t ranks, const Words& run_words) {
    Words all;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      Words one = {"/usr/bin/env", program()};
      if (rank == victim) {
        one.insert(one.begin() + 1, {"LD_PRELOAD=" + file_faults_library().string(), "MYLOS_FILE_FAULTS=" + rule});
      }
      one.insert(one.end(), run_words.begin(), run_words.end());
      if (ranks > 1) one.insert(one.begin(), {"-n", "1"});
      if (rank > 0) all.emplace_back(":");
      all.insert(all.end(), one.begin(), one.end());
    }
    if (ranks > 1) return RunningProgram(all, "", {}, mpiexec()).wait();
    return RunningProgram(Words(all.begin() + 1, all.end()), "", {}, all.front()).wait();
  }
  void expect_same_results(const fs::path& output, const fs::path& whole) const {
    EXPECT_EQ(losses_of(output), losses_of(whole));
    for (const char* model : {"best", "last"}) {
      EXPECT_EQ(read_file(output / model / "model.safetensors"), read_file(whole / model / "model.safetensors"));
    }
    EXPECT_EQ(run_mylos({"checkpoint", "diff", output, whole}).exit_code, 0);
    for (const auto& entry : fs::recursive_directory_iterator(directory_.path())) {
      const std::string name = entry.path().filename();
      const bool is_temporary = whole_name(name) != name || name.ends_with(".tmp") || name.starts_with(".probe");
      EXPECT_FALSE(is_temporary) << entry.path() << " stays";
    }
  }
  /// Kills the rank `victim` at every stride-th call, until a run makes fewer calls.
  void kill_at_calls(std::size_t ranks, std::size_t victim) {
    const fs::path whole = directory_ / "whole", output = directory_ / "killed";
    const ProgramRun reference = run_with("", victim, ranks, short_words(whole));
    ASSERT_EQ(reference.exit_code, 0) << reference.errors;
    const std::size_t stride = stride_of_kills(ranks == 1 ? 220 : 500);
    for (std::size_t call = (stride + 9) / 10;; call += stride) {
      SCOPED_TRACE(fmt::format("rank {} of {} killed at call {}", victim, ranks, call));
      const std::string rule = fmt::format("change#{}:kill:{}/", call, fs::canonical(directory_.path()).string());
      const ProgramRun killed = run_with(rule, victim, ranks, short_words(output));
      const ProgramRun again = run_with("", victim, ranks, short_words(output));
      ASSERT_EQ(again.exit_code, 0) << again.errors;
      expect_same_results(output, whole);
      fs::remove_all(output);
      if (killed.exit_code == 0) break;
    }
    fs::remove_all(whole);
  }
};

TEST_F(KilledAtFileCalls, ARankAloneLosesNothing) { kill_at_calls(1, 0); }
TEST_F(KilledAtFileCalls, TheFirstOfTwoRanksLosesNothing) { kill_at_calls(2, 0); }
TEST_F(KilledAtFileCalls, TheSecondOfTwoRanksLosesNothing) { kill_at_calls(2, 1); }

using FaultsOfFamily = OnFamily<Faults>;

/// Killed twice in the middle, each time on a different number of ranks and in another mode.
TEST_P(FaultsOfFamily, AKilledRunGoesOnOnOtherRanksInAnotherMode) {
  const fs::path whole = directory_ / "whole";
  const auto words_in = [&](const fs::path& output, const std::string& strategy, const std::string& micro_batch) {
    Words more = {"--steps", "150", "--checkpoint-every", "10", "--mode", strategy};
    const Words by_step =
        family_.drifts ? Words{"--deterministic", "--leaves", "4"} : Words{"--micro-batch", micro_batch};
    more.insert(more.end(), by_step.begin(), by_step.end());
    return words(output, more);
  };
  ASSERT_EQ(run_on(1, words_in(whole, "replicated", "5")).exit_code, 0);
  const std::size_t bytes = fs::file_size(whole / "metrics.jsonl");
  std::size_t starts = 0;
  for (const auto& [count, strategy] : {std::pair{2, "sharded"}, {4, "hybrid"}}) {
    RunningProgram running(launched(std::vector<Words>(count, words_in(run_, strategy, "2"))), "", {}, mpiexec());
    wait_for_size(run_ / "metrics.jsonl", ++starts * bytes / 5);
    for (const int process : processes_of(run_)) ::kill(process, SIGKILL);
    EXPECT_NE(running.wait().exit_code, 0);
  }
  const ProgramRun rest = run_on(family_.drifts ? 2 : 3, words_in(run_, "sharded-gradients", "1"));
  ASSERT_EQ(rest.exit_code, 0) << rest.errors;
  EXPECT_THAT(rest.errors, HasSubstr("goes on after step "));
  std::map<std::size_t, double> losses;
  for (const auto& row : metrics_of(run_, "loss")) losses[row["step"]] = row["loss"];
  EXPECT_EQ(losses.size(), 150u);
  for (const auto& row : metrics_of(whole, "loss")) {
    EXPECT_NEAR(losses[row["step"]], row["loss"].get<double>(), 1e-5) << row["step"];
  }
}

MYLOS_FOR_EACH_FAMILY(FaultsOfFamily);

TEST_F(Faults, AStoppedRankIsNamedAndEndsTheRun) {
  RunningProgram running(
      launched(std::vector<Words>(ranks, words(run_, {"--steps", "1000000", "--collective-timeout", "2s"}))), "", {},
      mpiexec());
  const std::vector<int> processes = wait_for_ranks(run_, ranks);
  ASSERT_EQ(processes.size(), ranks);
  wait_for_file(run_ / "metrics.jsonl");
  ::kill(processes[1], SIGSTOP);
  const ProgramRun run = running.wait();
  EXPECT_NE(run.exit_code, 0);
  EXPECT_THAT(run.errors, HasSubstr("rank 1")) << run.errors;
  EXPECT_THAT(run.errors, HasSubstr("step")) << run.errors;
  EXPECT_TRUE(processes_of(run_).empty()) << "a rank is left";
}

// A save that takes longer than the time limit of the others' collective (accelerate 3250, pytorch 143536).
class FullDisk : public Faults {
 protected:
  /// Starts a run on a disk that another process fills during a save. The shell condition `until` tells when that ends.
  std::optional<ProgramRun> run_until_full(const std::string& until, const Words& more) const {
    const std::string script = R"(
      fill() {
        until )" + until + R"(; do
          free=$(df -k --output=avail "$disk" | tail -n 1)
          if [ -e "$disk/run/checkpoints/latest" ] && [ "$free" -gt 600 ]; then
            head -c $(((free - 512) * 1024)) /dev/zero >>"$disk/dummy"
          fi
          sleep 0.02
        done
        rm "$disk/dummy"
      }
      fill 2>/dev/null &
      )" + mpiexec() + R"( -n 2 "$@" 2>"$disk.log"
      code=$?
      touch "$disk.ended"
      wait
      cat "$disk.log" >&2
      "$1" checkpoint verify "$disk/run"
      exit $code)";
    Words all = joined({"--checkpoint-every", "20", "--keep", "1"}, more);
    return run_on_small_disk(disk_, 16384, script, words(disk_ / "run", all));
  }

  fs::path disk_ = directory_ / "disk";
};

TEST_F(FullDisk, DuringASaveEndsTheRunAndLeavesTheLastCheckpoint) {
  const auto run = run_until_full(R"([ -e "$disk.ended" ])", {"--steps", "1000000"});
  if (!run) GTEST_SKIP() << "this user may not mount a file system";
  EXPECT_EQ(run->exit_code, 1) << run->errors;
  const Words lines = run->error_lines();
  const auto is_error = [](const std::string& line) { return line.starts_with("mylos: error: "); };
  EXPECT_EQ(std::ranges::count_if(lines, is_error), 1) << run->errors;
  EXPECT_THAT(*std::ranges::find_if(lines, is_error),
              ::testing::ContainsRegex("/checkpoints/step-[0-9]+.h5.[0-9a-f]+.tmp: No space left on device"));
  EXPECT_THAT(run->output, HasSubstr("all checksums match"));
}

TEST_F(FullDisk, DuringASaveMayBeToldAndTheRunGoesOn) {
  const auto run = run_until_full(R"(grep -q 'no checkpoint' "$disk.log" || [ -e "$disk.ended" ])",
                                  {"--steps", "200", "--on-save-error", "continue"});
  if (!run) GTEST_SKIP() << "this user may not mount a file system";
  EXPECT_EQ(run->exit_code, 0) << run->errors;
  EXPECT_THAT(run->errors, ::testing::ContainsRegex(
                               "step [0-9]+: no checkpoint: .*/step-[0-9]+.h5.[0-9a-f]+.tmp: No space left on device"));
  EXPECT_THAT(run->output, HasSubstr("step-000200.h5: "));
  EXPECT_THAT(run->output, HasSubstr("all checksums match"));
}

TEST_F(Faults, ASlowDiskOfOneRankIsNoHungCollective) {
  if (heap_is_sanitized) GTEST_SKIP() << "the sanitizer wants to be loaded first";
  const FileFaults slow("fsync:2s:step-000002.h5 fsync:2s:model.safetensors");
  const ProgramRun run =
      run_on(ranks, words(run_, {"--steps", "2", "--checkpoint-every", "2", "--collective-timeout", "1s"}));
  EXPECT_EQ(run.exit_code, 0) << run.errors;
}

TEST_F(Faults, ASignalToOneRankEndsAllAtAStepsEnd) {
  const auto run_until = [&](const std::function<void(RunningProgram&)>& signal) {
    fs::remove_all(run_);
    RunningProgram running(launched(std::vector<Words>(ranks, words(run_, {"--steps", "1000000"}))), "", {}, mpiexec());
    wait_for_file(run_ / "metrics.jsonl");
    signal(running);
    const ProgramRun run = running.wait();
    EXPECT_FALSE(parallel::resolve_checkpoint(run_).empty());
    EXPECT_FALSE(fs::exists(run_ / "last")) << "its checkpoint has the weights";
    return run;
  };
  const ProgramRun one = run_until([&](RunningProgram&) {
    const std::vector<int> processes = wait_for_ranks(run_, ranks);
    if (processes.size() == ranks) ::kill(processes[1], SIGTERM);
  });
  EXPECT_EQ(one.exit_code, 143) << one.errors;
  const ProgramRun all = run_until([](RunningProgram& running) { running.send(SIGUSR1); });  // mpirun forwards it
  EXPECT_EQ(all.exit_code, 85) << all.errors;
  EXPECT_THAT(all.errors, HasSubstr("ended by SIGUSR1 after"));
}

struct Waiting : RankRuns {
  using RankRuns::wait_for_file;
};

// oneDNN's float products for AVX2 keep the stack pointer in memory of the heap, where the frame of a handler would go.
TEST(FaultsOfOneProcess, StopsInTheMiddleOfProductsKeepTheBits) {
  if (!has_gemm_provider("onednn")) GTEST_SKIP() << "a build without oneDNN";
  fs::path model;
  try {
    model = families::resolve_model(FileReader(), "minilm");
  } catch (const std::exception&) {
    GTEST_SKIP() << "MiniLM is not there: run `mylos fetch minilm`";
  }
  const TemporaryDirectory directory;
  const EnvironmentVariable older("ONEDNN_MAX_CPU_ISA", "AVX2"),
      cache("XDG_CACHE_HOME", (directory / "cache").string());
  const auto words = [&](const fs::path& output) {
    Words all = {"train", "--model", model, "--train", source_dir() / "examples/squad/train.json", "--output", output};
    const Words more = {"--train-limit", "16", "--batch", "2", "--steps", "8", "--gemm", "onednn"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  const fs::path whole = directory / "whole", stopped = directory / "stopped";
  const ProgramRun reference = run_mylos(words(whole));
  ASSERT_EQ(reference.exit_code, 0) << reference.errors;
  std::mt19937 random(std::random_device{}());
  const std::size_t stops = std::getenv("MYLOS_FAULT_ROUNDS") == nullptr ? 1 : rounds() / 10;
  for (std::size_t round = 0; round < stops; ++round) {
    RunningProgram running(words(stopped));
    Waiting::wait_for_file(stopped / "metrics.jsonl");
    std::this_thread::sleep_for(
        std::chrono::duration<double>(std::uniform_real_distribution<double>(0.0, 0.5)(random)));
    // The first signal ends the run after its step; the others meet more of the products until then.
    for (int signals = 0; signals < 500; ++signals) {
      running.send(SIGUSR1);
      std::this_thread::sleep_for(std::chrono::microseconds(500));
    }
    const ProgramRun run = running.wait();
    EXPECT_THAT(run.exit_code, AnyOf(85, 0)) << run.errors;
    const ProgramRun rest = run_mylos(words(stopped));
    EXPECT_EQ(rest.exit_code, 0) << rest.errors;
    EXPECT_EQ(losses_of(stopped), losses_of(whole));
    EXPECT_EQ(read_file(stopped / "last" / "model.safetensors"), read_file(whole / "last" / "model.safetensors"));
    fs::remove_all(stopped);
  }
}

// mpirun forwards SIGUSR1, but kills its ranks soon after SIGTERM and Ctrl-C; here during a save.
TEST_F(Faults, WhatMpirunKillsInASaveSaysSoAndLeavesEarlierCheckpoints) {
  if (heap_is_sanitized) GTEST_SKIP() << "the sanitizer wants to be loaded first";
  if (!is_open_mpi()) GTEST_SKIP() << "this mpirun kills no ranks";
  const Words run_words = words(run_, {"--steps", "1000000"});
  EXPECT_EQ(run_and_signal(run_words, SIGUSR1).exit_code, 85);
  const fs::path saved = parallel::resolve_checkpoint(run_);
  ASSERT_FALSE(saved.empty());
  for (const int signal : {SIGTERM, SIGINT}) {
    const FileFaults slow("fsync:60s:step-");
    const ProgramRun run = run_and_signal(run_words, signal);
    EXPECT_NE(run.exit_code, 0);
    EXPECT_EQ(count(run.errors,
                    "mylos: signalled to end: saves at the end of a step, but mpirun kills its ranks 1 s after "
                    "SIGTERM or Ctrl-C"),
              1u)
        << run.errors;
    EXPECT_EQ(parallel::resolve_checkpoint(run_), saved);
    EXPECT_LE(unfinished_files(), 1u) << "that of the start before is removed; a slow rank is killed before it saves";
  }
}

TEST_F(Faults, TheWalltimesEndLeavesACheckpoint) {
  const ProgramRun run =
      run_on(ranks, words(run_, {"--steps", "1000000", "--walltime", "35s", "--stop-before", "30s"}));
  EXPECT_EQ(run.exit_code, 85) << run.errors;
  EXPECT_THAT(run.errors, HasSubstr("out of walltime after"));
  EXPECT_FALSE(parallel::resolve_checkpoint(run_).empty());
}

TEST_F(Faults, AWalltimeThatNobodyKnowsIsRefused) {
  const EnvironmentVariable slurm("SLURM_JOB_ID", ""), pbs("PBS_JOBID", "");
  const ProgramRun unknown = run_mylos(words(run_, {"--stop-before", "5m"}));
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_THAT(unknown.errors, HasSubstr("no scheduler reports when this job ends; give --walltime, too"));
  const ProgramRun over = run_mylos(words(run_, {"--walltime", "2m", "--stop-before", "5m"}));
  EXPECT_EQ(over.exit_code, 1);
  EXPECT_THAT(over.errors, HasSubstr("before the time limit"));
}

TEST_F(Faults, AJobWithoutALimitIsNotStopped) {
  const StandInProgram squeue("squeue", "echo UNLIMITED");
  const EnvironmentVariable slurm("SLURM_JOB_ID", "7"), end("SLURM_JOB_END_TIME", "");
  const ProgramRun run = run_mylos(words(run_, {"--steps", "1", "--stop-before", "5m"}));
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.errors, HasSubstr("--stop-before has no effect: this job has no time limit"));
}

}  // namespace
}  // namespace mylos::tests
