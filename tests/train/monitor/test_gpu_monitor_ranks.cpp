// A run of two ranks that compute on the CPU but report a GPU each. The monitor finds the tests' own library where it
// looks for NVIDIA's.

#include "parallel/communicator/agreement.hpp"
#include "tests/small_models/span_task.hpp"
#include "tests/support/launch.hpp"
#include "tests/support/shared_directory.hpp"
#include "train/engine/loop/trainer.hpp"
#include "train/monitor/gpu_monitor.hpp"
#include "train/monitor/gpu_record.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mylos::small_models {
namespace {

using namespace std::chrono_literals;

std::string uuid(std::size_t rank) { return "00000000-0000-0000-0000-0000000000a" + std::to_string(rank); }

/// Returns the placements of this program's ranks, each with a GPU.
std::vector<parallel::RankPlacement> placements_with_gpus() {
  std::vector<parallel::RankPlacement> placements = tests::launch().placements();
  for (std::size_t rank = 0; rank < placements.size(); ++rank) {
    placements[rank].device = uuid(rank);
    std::erase(placements[rank].device, '-');
  }
  return placements;
}

void train_watched(const std::filesystem::path& run) {
  train::TrainConfig config;
  config.steps = 3;
  config.evaluate_every = 4;
  config.gemm.provider = default_gemm_provider();
  SpanTask task(uneven_spans());
  train::Trainer trainer(config, task, train::ranks_of(tests::launch()));
  const auto fail_test = [](const std::string& line) { ADD_FAILURE() << line; };
  train::GpuMonitor monitor(run, placements_with_gpus(), tests::launch().world().rank(), {1h, fail_test});
  EXPECT_THAT(monitor.obstacles(), testing::Not(testing::HasSubstr("GPUs")));
  trainer.run({&monitor});
  tests::launch().world().barrier("all samples");
}

void expect_every_gpu(const std::filesystem::path& run) {
  const auto all = train::read_gpu_samples(run);
  ASSERT_EQ(all.size(), tests::launch().world().size());
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    EXPECT_EQ(all[rank].node, tests::launch().placement().host);
    EXPECT_EQ(all[rank].index, rank);
    EXPECT_EQ(all[rank].points.back().step, 3u);
  }
}

TEST(GpuMonitorRanks, OneFileHasEveryGpuOfANode) {
  const tests::EnvironmentVariable how("FAKE_NVML", "counted"),
      there("FAKE_NVML_GPUS", " GPU-" + uuid(0) + " GPU-" + uuid(1));
  const tests::SharedDirectory run;
  train_watched(run.path());
  expect_every_gpu(run.path());
}

TEST(GpuMonitorRanks, SoItDoesWhereEachRankSeesItsOwn) {
  const tests::EnvironmentVariable how("FAKE_NVML", "counted"),
      there("FAKE_NVML_GPUS", " GPU-" + uuid(tests::launch().world().rank()));
  const tests::SharedDirectory run;
  train_watched(run.path());
  expect_every_gpu(run.path());
}

}  // namespace
}  // namespace mylos::small_models
