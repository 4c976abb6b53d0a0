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
  EXPECT_EQ(gpu().utilization.value(), 15.0);
  EXPECT_EQ(gpu().power.value(), std::nullopt);
  EXPECT_EQ(follower_.joules(), 50.0);
  write(first + line(3.0, 90.0, 70.0) + line(4.0, std::nullopt, 80.0));
  follower_.update();
  EXPECT_EQ(gpu().utilization.value(), 90.0);
  EXPECT_EQ(gpu().last.utilization, std::nullopt);
  EXPECT_EQ(follower_.joules(), 80.0);
  follower_.update();
  EXPECT_EQ(gpu().utilization.value(), std::nullopt) << "nothing new";
  EXPECT_EQ(gpu().time, 4.0);
}

TEST_F(GpuFollowerTest, ForgetsARunThatAnotherReplaced) {
  write(line(1.0, 10.0, 0.0) + line(2.0, 20.0, 50.0));
  follower_.update();
  write(line(9.0, 30.0, 7.0));
  follower_.update();
  EXPECT_EQ(follower_.joules(), 7.0);
  EXPECT_EQ(gpu().utilization.value(), 30.0);
}

TEST_F(GpuFollowerTest, EnergyThatNoGpuTellsIsUnknown) {
  write(line(1.0, 10.0, std::nullopt));
  follower_.update();
  EXPECT_EQ(follower_.joules(), std::nullopt);
}

}  // namespace
}  // namespace mylos::train
