#include "train/monitor/gpu_follower.hpp"

#include "tests/support/temporary.hpp"

#include <gtest/gtest.h>

namespace mylos::train {
namespace {

std::string line(double time, std::optional<double> utilization, std::optional<double> energy) {
  return to_line({time, 1, {{.index = 0, .utilization = utilization, .energy = energy}}});
}

class GpuFollowerTest : public testing::Test {
 protected:
  void write(const std::string& text) const { tests::write_file(run_.path() / "gpus" / "n1.jsonl", text); }
  const GpuFollower::Gpu& gpu() const { return follower_.gpus().at({"n1", 0}); }
  std::optional<double> recent_utilization() const {
    const Statistics& recent = gpu().recent.front();
    return recent.empty() ? std::nullopt : std::optional(recent.mean());
  }

  tests::TemporaryDirectory run_;
  GpuFollower follower_{run_.path()};
};

TEST_F(GpuFollowerTest, KeepsTheLastReadingAndTheMeanOfTheNewOnes) {
  follower_.update();
  EXPECT_TRUE(follower_.gpus().empty());
  EXPECT_EQ(follower_.joules(), std::nullopt);
  const std::string first = line(1.0, 10.0, 0.0) + line(2.0, 20.0, 50.0);
  write(first);
  follower_.update();
  EXPECT_EQ(gpu().last.utilization, 20.0);
  EXPECT_EQ(gpu().time, 2.0);
  EXPECT_EQ(recent_utilization(), 15.0);
  EXPECT_TRUE(gpu().recent.back().empty()) << "the power";
  EXPECT_EQ(follower_.joules(), 50.0);
  write(first + line(3.0, 90.0, 70.0) + line(4.0, std::nullopt, 80.0));
  follower_.update();
  EXPECT_EQ(recent_utilization(), 90.0);
  EXPECT_EQ(gpu().last.utilization, std::nullopt);
  EXPECT_EQ(follower_.joules(), 80.0);
  follower_.update();
  EXPECT_EQ(recent_utilization(), std::nullopt) << "nothing new";
  EXPECT_EQ(gpu().whole.front().mean(), 40.0);
  EXPECT_EQ(gpu().whole.front().least(), 10.0);
  EXPECT_EQ(gpu().whole.front().peak(), 90.0);
  EXPECT_EQ(gpu().time, 4.0);
}

TEST_F(GpuFollowerTest, FollowsNodes) {
  write(to_line({1.0, 1, {}, NodeReading{.cpu = 10.0, .power = 300.0, .power_source = "RAPL"}}) +
        line(2.0, 20.0, std::nullopt) + to_line({3.0, 1, {}, NodeReading{.cpu = 30.0}}));
  follower_.update();
  ASSERT_EQ(follower_.nodes().size(), 1u);
  const Followed<NodeReading>& node = follower_.nodes().at("n1");
  EXPECT_EQ(node.time, 3.0);
  EXPECT_EQ(node.last.cpu, 30.0);
  EXPECT_EQ(node.recent.front().mean(), 20.0);
  EXPECT_EQ(node.whole.back().peak(), 300.0);
  follower_.update();
  EXPECT_TRUE(follower_.nodes().at("n1").recent.front().empty());
  EXPECT_EQ(follower_.nodes().at("n1").whole.front().peak(), 30.0);
}

TEST_F(GpuFollowerTest, ForgetsARunThatAnotherReplaced) {
  write(line(1.0, 10.0, 0.0) + line(2.0, 20.0, 50.0));
  follower_.update();
  write(line(9.0, 30.0, 7.0));
  follower_.update();
  EXPECT_EQ(follower_.joules(), 7.0);
  EXPECT_EQ(recent_utilization(), 30.0);
}

TEST_F(GpuFollowerTest, EnergyThatNoGpuTellsIsUnknown) {
  write(line(1.0, 10.0, std::nullopt));
  follower_.update();
  EXPECT_EQ(follower_.joules(), std::nullopt);
}

}  // namespace
}  // namespace mylos::train
