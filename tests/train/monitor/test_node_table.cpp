#include "train/monitor/node_table.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mylos::train {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr double gibibyte = 1 << 30;

NodeReading node_reading(double cpu) { return {.cpu = cpu, .memory = 2 * gibibyte, .memory_total = 8 * gibibyte}; }

TEST(NodeTable, ClosesWithMeanAndPeakOfEach) {
  GpuFollower::Nodes nodes;
  nodes["n1"].add(node_reading(10.0), 1.0);
  NodeReading second = node_reading(40.0);
  second.power = 300.0;
  second.power_source = "RAPL";
  nodes["n1"].add(second, 2.0);
  nodes["node2"].add(node_reading(5.0), 2.0);
  GpuFollower::Gpus gpus;
  for (const std::size_t index : {0, 1}) {
    const double value = static_cast<double>(index);
    gpus[{"n1", index}].add({.utilization = 90.0 + 6.0 * value,
                             .memory_utilization = 40.0,
                             .memory = (4.0 + value) * gibibyte,
                             .power = 100.0 * (1.0 + value)},
                            1.0);
  }
  EXPECT_EQ(
      closing_table(nodes, gpus),
      "mean / peak of each node; power by RAPL\n"
      "node     CPU %   memory GiB    power W  GPUs    GPU %  GPU memory GiB  memory controller %  GPU power W\n"
      "n1     25 / 40  2.00 / 2.00  300 / 300     2  93 / 96     4.50 / 5.00              40 / 40    150 / 200\n"
      "node2    5 / 5  2.00 / 2.00          -     0        -               -                    -            -\n");
}

TEST(NodeTable, LeavesOutWhatNoNodeReports) {
  GpuFollower::Nodes nodes;
  nodes["n1"].add({.cpu = 50.0}, 1.0);
  EXPECT_EQ(closing_table(nodes, {}), "mean / peak of each node\nnode    CPU %\nn1    50 / 50\n");
  EXPECT_EQ(closing_table({}, {}), "");
}

TEST(NodeTable, ShowsEightNodesAndTheOthersTogether) {
  GpuFollower::Nodes nodes;
  for (std::size_t i = 0; i < 1008; ++i) nodes[fmt::format("n{:04}", i)].add({.cpu = i < 8 ? 90.0 : 10.0}, 1.0);
  nodes["n1000"].add({.cpu = 60.0}, 2.0);
  const std::string text = closing_table(nodes, {});
  EXPECT_EQ(std::ranges::count(text, '\n'), 2 + 8 + 1);
  EXPECT_THAT(text, AllOf(HasSubstr("n0007         90 / 90\n"), HasSubstr("\n1,000 others  10 / 60\n"),
                          Not(HasSubstr("n0008"))));
}

}  // namespace
}  // namespace mylos::train
