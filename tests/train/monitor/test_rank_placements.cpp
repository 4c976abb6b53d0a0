#include "train/monitor/rank_placements.hpp"

#include <gtest/gtest.h>

namespace mylos::train {
namespace {

using parallel::RankPlacement;

RankPlacement placement(const std::string& host, const std::string& processors, const std::string& job = "") {
  return {.host = host, .processors = processors, .job = job};
}

TEST(RankPlacements, SayNothingOfOneRankOutsideOfAJob) {
  EXPECT_EQ(rank_lines(std::vector{placement("here", "0-1")}), "");
  EXPECT_EQ(rank_lines({}), "");
  EXPECT_EQ(rank_lines(std::vector{placement("n1", "0-1", "PBS 7")}),
            "job      PBS 7\nrank     0: n1, processors 0-1\n");
}

TEST(RankPlacements, SayTheJobOnceAndFoldNeighboursThatAreAlike) {
  const std::string job = "Slurm 12, start 2";
  EXPECT_EQ(
      rank_lines(std::vector{placement("n1", "0-7", job), placement("n1", "0-7", job), placement("n2", "0-7", job),
                             placement("n2", "8-15", job), placement("n1", "0-7", job)}),
      "job      Slurm 12, start 2\n"
      "rank     0-1: n1, processors 0-7\n"
      "rank     2: n2, processors 0-7\n"
      "rank     3: n2, processors 8-15\n"
      "rank     4: n1, processors 0-7\n");
}

TEST(RankPlacements, SayWhichGpuAndTheJobsWhereTheyDiffer) {
  RankPlacement first = placement("n1", "0-7", "Slurm 12"), second = placement("n1", "8-15");
  first.device_name = "GPU 0 NVIDIA A100-SXM4-80GB";
  first.device = "GPU-1";
  EXPECT_EQ(rank_lines(std::vector{first, second}),
            "rank     0: n1, Slurm 12, GPU 0 NVIDIA A100-SXM4-80GB (GPU-1), processors 0-7\n"
            "rank     1: n1, no job, processors 8-15\n");
}

}  // namespace
}  // namespace mylos::train
