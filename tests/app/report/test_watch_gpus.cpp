#include "app/report/watch_gpus.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace mylos::app {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
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

std::string shown(const train::GpuFollower::Gpus& gpus, double now = 1000.0) {
  return node_and_gpu_lines({}, gpus, now);
}

TEST(WatchGpus, UpToSixteenHaveALineEach) {
  EXPECT_EQ(shown({}), "");
  EXPECT_EQ(lines(shown(gpus_of(4))), 1 + 4 + 16);
}

TEST(WatchGpus, MoreHaveARowForTheirNode) {
  const std::string text = shown(gpus_of(5));
  EXPECT_EQ(lines(text), 1 + 5);
  EXPECT_THAT(text, StartsWith("nodes      node  GPUs      GPU %      GPU memory GiB  GPU power W\n"));
  EXPECT_THAT(text, HasSubstr("           n003     4  3 / 4 / 6  1.00 / 2.50 / 4.00          100\n"));
}

TEST(WatchGpus, OfManyNodesThoseThatDoLeastAreShown) {
  const std::string text = shown(gpus_of(40));
  EXPECT_EQ(lines(text), 1 + 1 + 16);
  EXPECT_THAT(text, HasSubstr("\n           40 nodes   160  0 / 11 / 22  "));
  EXPECT_THAT(text, HasSubstr("           n000  "));
  EXPECT_THAT(text, HasSubstr("           n020  "));
  EXPECT_EQ(text.find("n019"), std::string::npos);
}

TEST(WatchGpus, NodesHaveARowWithoutGpusToo) {
  train::GpuFollower::Nodes nodes;
  nodes["n1"].add({.cpu = 97.4, .memory = 3.0 * (1 << 30), .power = 250.0}, 1000.0);
  nodes["n2"].add({.cpu = 5.0, .memory = 1.0 * (1 << 30)}, 700.0);
  EXPECT_EQ(node_and_gpu_lines(nodes, {}, 1000.0),
            "nodes      node  CPU %  memory GiB  power W\n"
            "           n1       97        3.00      250\n"
            "           n2        5        1.00        -, nothing written for 5:00\n");
  for (std::size_t i = 0; i < 40; ++i) nodes[fmt::format("m{:02}", i)].add({.cpu = 50.0 + i}, 1000.0);
  const std::string many = node_and_gpu_lines(nodes, {}, 1000.0);
  EXPECT_EQ(lines(many), 1 + 1 + 16);
  EXPECT_THAT(many, AllOf(HasSubstr("42 nodes  5 / "), HasSubstr(" n2 "), HasSubstr(" m14 "), Not(HasSubstr(" m15 "))));
}

TEST(WatchGpus, WhatIsNotToldIsADash) {
  train::GpuFollower::Gpus gpus = gpus_of(5);
  gpus[{"n003", 0}].last = gpus[{"n003", 1}].last = gpus[{"n003", 2}].last = gpus[{"n003", 3}].last = {};
  EXPECT_THAT(shown(gpus), HasSubstr("           n003     4          -                   -            -\n"));
}

TEST(WatchGpus, AGpuThatNobodyTellsOfIsSaid) {
  EXPECT_THAT(shown(gpus_of(1), 1100.0), Not(HasSubstr("nothing written")));
  EXPECT_THAT(shown(gpus_of(1), 1300.0), HasSubstr(", nothing written for 5:00\n"));
}

}  // namespace
}  // namespace mylos::app
