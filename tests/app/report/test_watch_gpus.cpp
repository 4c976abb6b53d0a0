#include "app/report/watch_gpus.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace mylos::app {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

/// Returns `nodes` nodes with four GPUs each. Utilization increases with the index.
train::GpuFollower::Gpus gpus_of(std::size_t nodes) {
  train::GpuFollower::Gpus gpus;
  for (std::size_t node = 0; node < nodes; ++node) {
    for (std::size_t index = 0; index < 4; ++index) {
      train::GpuFollower::Gpu& gpu = gpus[{fmt::format("n{:03}", node), index}];
      gpu.time = 1000.0;
      gpu.last = {.index = index,
                  .utilization = static_cast<double>(node % 20) + static_cast<double>(index),
                  .memory = static_cast<double>(1 + index) * (1 << 30),
                  .power = 100.0};
    }
  }
  return gpus;
}

std::ptrdiff_t lines(const std::string& text) { return std::ranges::count(text, '\n'); }

TEST(WatchGpus, UpToSixteenHaveALineEach) {
  EXPECT_EQ(gpu_lines({}, 1000.0), "");
  EXPECT_EQ(lines(gpu_lines(gpus_of(4), 1000.0)), 16);
}

TEST(WatchGpus, MoreHaveALineForTheirNode) {
  const std::string text = gpu_lines(gpus_of(5), 1000.0);
  EXPECT_EQ(lines(text), 5);
  EXPECT_THAT(text, HasSubstr("node       n003: 4 GPUs, 3 / 4 / 6 %, 1.00 / 2.00 / 4.00 GiB, 100 / 100 / 100 W\n"));
}

TEST(WatchGpus, OfManyNodesThoseThatDoLeastAreShown) {
  const std::string text = gpu_lines(gpus_of(40), 1000.0);
  EXPECT_EQ(lines(text), 1 + 16);
  EXPECT_THAT(text, StartsWith("gpus       40 nodes: 160 GPUs, 0 / 11 / 22 %, "));
  EXPECT_THAT(text, HasSubstr("node       n000: "));
  EXPECT_THAT(text, HasSubstr("node       n020: "));
  EXPECT_EQ(text.find("n019"), std::string::npos);
}

TEST(WatchGpus, WhatIsNotToldIsADash) {
  train::GpuFollower::Gpus gpus = gpus_of(5);
  for (auto& [location, gpu] : gpus) gpu.last.power.reset();
  EXPECT_THAT(gpu_lines(gpus, 1000.0), HasSubstr("1.00 / 2.00 / 4.00 GiB, -\n"));
}

TEST(WatchGpus, AGpuThatNobodyTellsOfIsSaid) {
  EXPECT_THAT(gpu_lines(gpus_of(1), 1100.0), Not(HasSubstr("nothing written")));
  EXPECT_THAT(gpu_lines(gpus_of(1), 1300.0), HasSubstr(", nothing written for 5:00\n"));
}

}  // namespace
}  // namespace mylos::app
