#include "train/monitor/gpu_monitor.hpp"

#include "tests/support/temporary.hpp"
#include "tests/support/waiting.hpp"
#include "train/monitor/gpu_record.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <sstream>
#include <thread>

/// Uses the tests' own library; no GPU is queried.
namespace mylos::train {
namespace {

using namespace std::chrono_literals;
using parallel::RankPlacement;
using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;
using tests::EnvironmentVariable;

constexpr const char* both = " GPU-00000000-0000-0000-0000-0000000000a0 GPU-00000000-0000-0000-0000-0000000000a1";

std::string device(char last) { return std::string(30, '0') + "a" + last; }

/// Returns two ranks with one GPU each.
std::vector<RankPlacement> two_ranks(std::size_t nodes = 1) {
  return {{.host = "n0", .node = 0, .rank_of_node = 0, .device = device('0')},
          {.host = fmt::format("n{}", nodes - 1),
           .node = nodes - 1,
           .rank_of_node = nodes == 1 ? 1u : 0u,
           .device = device('1')}};
}

class GpuMonitorTest : public testing::Test {
 protected:
  GpuMonitorTest() {
    std::filesystem::create_directory(run_);
    tests::write_file(system_ / "proc/stat", "cpu 1 2 3 4 5 6 7 8\n");
    tests::write_file(system_ / "proc/meminfo", "MemTotal: 9 kB\nMemAvailable: 4 kB\n");
    tests::write_file(system_ / "sys/cray/pm_counters/power", "346 W\n");
  }
  std::unique_ptr<GpuMonitor> watch(std::size_t rank, const std::vector<RankPlacement>& placements = two_ranks(),
                                    std::chrono::duration<double> interval = 1h) {
    const GpuMonitor::Settings settings{interval,
                                        [this](const std::string& line) {
                                          const std::lock_guard guard(mutex_);
                                          log_.push_back(line);
                                        },
                                        open_,
                                        longest_wait_,
                                        gpu_log_,
                                        system_,
                                        {}};
    return std::make_unique<GpuMonitor>(run_, placements, rank, settings);
  }
  std::size_t samples() const {
    const auto all = read_gpu_samples(run_);
    std::size_t most = 0;
    for (const GpuSeries& gpu : all) most = std::max(most, gpu.points.size());
    return most;
  }
  void await_samples(std::size_t count) const {
    tests::wait_until([&] { return samples() >= count; });
  }

  /// Returns the node's readings of its file.
  std::vector<NodeReading> node_readings(const std::string& node = "n0") const {
    std::vector<NodeReading> readings;
    GpuRecordReader(run_).read([&](const std::string& name, const GpuSample& sample) {
      if (name == node && sample.node) readings.push_back(*sample.node);
    });
    return readings;
  }

  std::chrono::duration<double> longest_wait_{60.0};
  tests::TemporaryDirectory directory_;
  std::filesystem::path run_ = directory_ / "run", gpu_log_, system_ = directory_ / "system";
  std::function<std::unique_ptr<const GpuLibrary>(const std::string&)> open_ = [](const std::string&) {
    return open_nvml(MYLOS_FAKE_NVML);
  };
  EnvironmentVariable there_{"FAKE_NVML_GPUS", both}, how_{"FAKE_NVML", "counted"};
  std::mutex mutex_;
  std::vector<std::string> log_;
};

TEST(OpenGpuLibrary, TakesThatOfTheVendorThatTheIdTells) {
  const auto error_with = [](const char* device) { return tests::error_of([&] { open_gpu_library(device); }); };
  EXPECT_THAT(error_with("0000:c1:00-00"), StartsWith("ROCm SMI cannot be loaded"));
  EXPECT_THAT(error_with("000000000000000000000000000000a1"), testing::Not(StartsWith("ROCm SMI")));
}

TEST_F(GpuMonitorTest, AGpuOfAmdIsAskedThroughItsOwnLibrary) {
  open_ = [](const std::string&) { return open_rocm_smi(MYLOS_FAKE_ROCM_SMI); };
  watch(0, {{.host = "n0", .node = 0, .rank_of_node = 0, .device = "0000:c1:00-00"}})->finish();
  const std::vector<GpuSeries> gpus = read_gpu_samples(run_);
  ASSERT_EQ(gpus.size(), 1u);
  EXPECT_EQ(gpus[0].points.at(0).reading.name, "Fake Instinct");
  EXPECT_EQ(watch(0, {{.host = "n0", .node = 0, .rank_of_node = 0, .device = "0000:ff:00-00"}})->obstacles(),
            "GPUs of {nodes} are not recorded: the driver does not show them to this process");
}

TEST_F(GpuMonitorTest, SamplesFromTheBeginningToTheEnd) {
  auto monitor = watch(0);
  EXPECT_TRUE(monitor->writes());
  EXPECT_EQ(monitor->obstacles(), "");
  await_samples(1);
  monitor->start({.steps = 10, .first_step = 3});
  monitor->step({.step = 4});
  monitor->finish();
  const auto all = read_gpu_samples(run_);
  ASSERT_EQ(all.size(), 2u);
  for (const GpuSeries& gpu : all) {
    EXPECT_EQ(gpu.node, "n0");
    ASSERT_EQ(gpu.points.size(), 2u);
    EXPECT_EQ(gpu.points[0].reading.energy, 0.0);
    EXPECT_EQ(gpu.points[1].step, 4u);
    EXPECT_LE(gpu.points[0].time, gpu.points[1].time);
    EXPECT_EQ(gpu.energy.joules(), 1000.0 * static_cast<double>(gpu.index + 1));
  }
  EXPECT_EQ(all[1].points[0].reading.name, "Fake GPU");
  EXPECT_EQ(all[1].points[0].reading.utilization, 20.0);
  EXPECT_THAT(log_, IsEmpty());
}

TEST_F(GpuMonitorTest, SamplesFromTimeToTime) {
  const auto monitor = watch(0, two_ranks(), 5ms);
  await_samples(4);
  EXPECT_GE(samples(), 4u);
}

TEST_F(GpuMonitorTest, ASecondStartAppendsAndEnergyIsTheSumOfBoth) {
  watch(0)->finish();
  const std::filesystem::path file = run_ / "gpus" / "n0.jsonl";
  tests::write_file(file, tests::read_file(file) + R"({"time": 1, "st)");  // killed during a write
  watch(0)->finish();
  const auto all = read_gpu_samples(run_);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(std::ranges::count(all[0].points, 0.0, [](const auto& point) { return *point.reading.energy; }), 2);
}

TEST_F(GpuMonitorTest, OneRankOfANodeWritesForAll) {
  const auto first = watch(0), second = watch(1);
  EXPECT_TRUE(first->writes());
  EXPECT_FALSE(second->writes());
  EXPECT_EQ(second->obstacles(), "");
}

TEST_F(GpuMonitorTest, EachNodeHasAFile) {
  const auto first = watch(0, two_ranks(2)), second = watch(1, two_ranks(2));
  first->finish();
  second->finish();
  const auto all = read_gpu_samples(run_);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].node, "n0");
  EXPECT_EQ(all[1].node, "n1");
  EXPECT_EQ(all[1].index, 0u);
}

TEST_F(GpuMonitorTest, ARankThatSeesItsOwnGpuOnlyWritesForThat) {
  {
    const EnvironmentVariable seen("FAKE_NVML_GPUS", " GPU-00000000-0000-0000-0000-0000000000a1");
    watch(1)->finish();
  }
  const auto all = read_gpu_samples(run_);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].node, "n0");
  EXPECT_EQ(all[0].index, 1u) << "in the order of the ranks, whatever this one sees";
}

TEST_F(GpuMonitorTest, RanksThatShareAGpuCountItOnce) {
  std::vector<RankPlacement> placements = two_ranks();
  placements[1].device = placements[0].device;
  watch(0, placements)->finish();
  EXPECT_EQ(read_gpu_samples(run_).size(), 1u);
  EXPECT_FALSE(watch(1, placements)->writes());
}

TEST_F(GpuMonitorTest, OfARunOnProcessorsTheNodeIsWritten) {
  std::vector<RankPlacement> placements = two_ranks();
  for (RankPlacement& placement : placements) placement.device.clear();
  EXPECT_FALSE(watch(1, placements)->writes()) << "the first rank of the node writes for it";
  const auto monitor = watch(0, placements);
  EXPECT_EQ(monitor->obstacles(), "");
  monitor->finish();
  EXPECT_THAT(read_gpu_samples(run_), IsEmpty());
  const std::vector<NodeReading> readings = node_readings();
  ASSERT_FALSE(readings.empty());
  EXPECT_EQ(readings.back().memory, 5.0 * 1024);
  EXPECT_EQ(readings.back().power, 346.0);
  EXPECT_EQ(readings.back().power_source, "Cray");
}

TEST_F(GpuMonitorTest, OnlyTheFirstRankOfANodeWritesTheNodesValues) {
  {
    const EnvironmentVariable seen("FAKE_NVML_GPUS", " GPU-00000000-0000-0000-0000-0000000000a1");
    watch(1)->finish();
  }
  EXPECT_GE(samples(), 1u);
  EXPECT_THAT(node_readings(), IsEmpty());
  watch(0)->finish();
  EXPECT_THAT(node_readings(), Not(IsEmpty()));
}

TEST_F(GpuMonitorTest, TheLogOfGpusHasARowForEachAndSample) {
  gpu_log_ = directory_ / "gpus.csv";
  EXPECT_FALSE(watch(1)->writes());
  const auto monitor = watch(0);
  await_samples(1);
  monitor->finish();
  std::istringstream lines(tests::read_file(gpu_log_));
  std::vector<std::string> rows;
  for (std::string line; std::getline(lines, line);) rows.push_back(line);
  ASSERT_EQ(rows.size(), 1u + 2 * 2);
  EXPECT_EQ(rows[0],
            "timestamp, name, utilization.gpu [%], utilization.memory [%], memory.total [MiB], memory.used [MiB]");
  EXPECT_THAT(rows[1], EndsWith(", Fake GPU, 10 %, 5 %, 16384 MiB, 1024 MiB"));
  EXPECT_THAT(rows[4], EndsWith(", Fake GPU, 20 %, 5 %, 16384 MiB, 2048 MiB"));
}

TEST_F(GpuMonitorTest, EachOfSeveralNodesHasALogOfGpus) {
  gpu_log_ = directory_ / "gpus.csv";
  watch(0, two_ranks(2))->finish();
  watch(1, two_ranks(2))->finish();
  EXPECT_FALSE(std::filesystem::exists(gpu_log_));
  EXPECT_THAT(tests::read_file(directory_ / "gpus-n0.csv"), HasSubstr("1024 MiB"));
  EXPECT_THAT(tests::read_file(directory_ / "gpus-n1.csv"), HasSubstr("2048 MiB"));
}

TEST_F(GpuMonitorTest, ALogOfGpusThatCannotBeWrittenEndsNothing) {
  tests::write_file(directory_ / "none", "a file");
  gpu_log_ = directory_ / "none" / "gpus.csv";
  for (const std::size_t nodes : {1, 2}) {
    const auto monitor = watch(0, two_ranks(nodes));
    EXPECT_THAT(monitor->obstacles(), AllOf(StartsWith("`gpu-log` of {nodes} is not written: "),
                                            HasSubstr(gpu_log_.parent_path().string()), HasSubstr("Not a directory")));
    monitor->finish();
    EXPECT_GE(samples(), 1u);
  }
}

TEST_F(GpuMonitorTest, ARunWithoutGpusHasNoLogOfThem) {
  gpu_log_ = directory_ / "gpus.csv";
  std::vector<RankPlacement> placements = two_ranks();
  for (RankPlacement& placement : placements) placement.device.clear();
  const auto monitor = watch(0, placements);
  EXPECT_EQ(monitor->obstacles(), "");
  monitor->finish();
  EXPECT_FALSE(std::filesystem::exists(gpu_log_));
}

TEST_F(GpuMonitorTest, WithoutACounterEnergyIsPowerTimesTime) {
  const EnvironmentVariable how("FAKE_NVML", "uncounted");
  const auto begin = std::chrono::steady_clock::now();
  {
    const auto monitor = watch(0, two_ranks(), 5ms);
    await_samples(3);
  }
  const auto all = read_gpu_samples(run_);
  ASSERT_EQ(all.size(), 2u);
  const std::chrono::duration<double> whole = std::chrono::steady_clock::now() - begin;
  EXPECT_GT(all[1].energy.joules(), 0.0);
  EXPECT_LE(all[1].energy.joules(), 200.0 * whole.count());
}

TEST_F(GpuMonitorTest, WhatADriverDoesNotTellIsLeftOut) {
  const EnvironmentVariable how("FAKE_NVML", "silent");
  watch(0)->finish();
  const auto all = read_gpu_samples(run_);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_TRUE(all[0].points[0].reading.memory.has_value());
  EXPECT_FALSE(all[0].points[0].reading.energy.has_value());
  EXPECT_THAT(log_, IsEmpty());
}

TEST_F(GpuMonitorTest, AGpuThatIsLostIsOneLineAndTheOthersGoOn) {
  const EnvironmentVariable how("FAKE_NVML", "lost");
  {
    const auto monitor = watch(0, two_ranks(), 5ms);
    await_samples(6);
  }
  EXPECT_THAT(log_, ElementsAre("n0: GPU 0 is no longer recorded: NVML: GPU is lost"));
  const auto all = read_gpu_samples(run_);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].points.size(), 2u);
  EXPECT_GE(all[1].points.size(), 6u);
}

TEST_F(GpuMonitorTest, ADriverThatDoesNotAnswerIsLeftBehind) {
  const EnvironmentVariable how("FAKE_NVML", "stuck");
  longest_wait_ = 50ms;
  {
    const auto monitor = watch(0, two_ranks(), 1ms);
    await_samples(1);
    std::this_thread::sleep_for(20ms);
  }
  EXPECT_THAT(log_, ElementsAre("n0: the GPUs' driver or the disk does not respond; the last sample is left out"));
}

TEST_F(GpuMonitorTest, WhatStandsAgainstItIsToldOnceForANode) {
  const EnvironmentVariable how("FAKE_NVML", "broken");
  std::filesystem::remove(system_ / "proc/stat");
  EXPECT_EQ(watch(0)->obstacles(), "CPU utilization of {nodes} is not recorded: " + (system_ / "proc/stat").string() +
                                       ": No such file or directory\n"
                                       "GPUs of {nodes} are not recorded: NVML does not start: Driver Not Loaded");
  EXPECT_EQ(watch(1)->obstacles(), "");
  EXPECT_FALSE(node_readings().empty()) << "the node is recorded without its GPUs";
}

TEST_F(GpuMonitorTest, GpusThatNobodySeesAreSaid) {
  const EnvironmentVariable seen("FAKE_NVML_GPUS", " GPU-00000000-0000-0000-0000-0000000000ff");
  EXPECT_EQ(watch(0)->obstacles(), "GPUs of {nodes} are not recorded: the driver does not show them to this process");
}

TEST_F(GpuMonitorTest, ADirectoryThatCannotBeWrittenEndsNothing) {
  tests::write_file(run_ / "gpus", "a file");
  EXPECT_THAT(watch(0)->obstacles(),
              AllOf(StartsWith("{nodes} cannot be recorded: "), HasSubstr("gpus cannot be made: ")));
}

TEST_F(GpuMonitorTest, AFullDiskIsOneLine) {
  std::filesystem::create_directories(run_ / "gpus");
  std::filesystem::create_symlink("/dev/full", run_ / "gpus" / "n0.jsonl");
  {
    const auto monitor = watch(0, two_ranks(), 1ms);
    std::this_thread::sleep_for(50ms);
  }
  ASSERT_EQ(log_.size(), 1u);
  EXPECT_THAT(log_[0], AllOf(HasSubstr("n0: the node is not recorded: cannot write "), HasSubstr("No space left")));
}

TEST_F(GpuMonitorTest, AnExceptionBesideItEndsTheThreadToo) {
  EXPECT_EQ(tests::error_of([this] {
              const auto monitor = watch(0);
              throw std::runtime_error("the run failed");
            }),
            "the run failed");
  EXPECT_GE(samples(), 1u);
}

TEST(GpuSampleInterval, GrowsSoThatManyNodesDoNotWriteMore) {
  EXPECT_EQ(gpu_sample_interval(1), 5s);
  EXPECT_EQ(gpu_sample_interval(16), 5s);
  EXPECT_EQ(gpu_sample_interval(64), 20s);
  EXPECT_EQ(gpu_sample_interval(4096), 60s);
}

TEST(UnwatchedLines, AreOneForEachReason) {
  const std::vector<std::string> obstacles = {"GPUs of {nodes} are not recorded: no driver", "",
                                              "power of {nodes} is not recorded: no RAPL\n"
                                              "GPUs of {nodes} are not recorded: no driver"};
  EXPECT_THAT(unwatched_lines(obstacles),
              ElementsAre("GPUs of 2 nodes are not recorded: no driver", "power of 1 node is not recorded: no RAPL"));
}

TEST(GpuNodeName, IsTheHostsUnlessSeveralNodesHaveIt) {
  const std::vector<RankPlacement> placements = {
      {.host = "a", .node = 0}, {.host = "a", .node = 0}, {.host = "b", .node = 1}};
  EXPECT_EQ(gpu_node_name(placements, 1), "a");
  const std::vector<RankPlacement> alike = {{.host = "container", .node = 0}, {.host = "container", .node = 1}};
  EXPECT_EQ(gpu_node_name(alike, 1), "container-1");
}

}  // namespace
}  // namespace mylos::train
