#include "parallel/launch/communicator_choice.hpp"

#include "tests/support/temporary.hpp"

#include <gmock/gmock.h>

namespace mylos::parallel {
namespace {

using ::testing::HasSubstr;

std::vector<RankPlacement> two_placements(bool first_has_nccl, bool second_has_nccl) {
  std::vector<RankPlacement> placements(2);
  placements[0] = {.host = "a", .device = "gpu-1", .has_nccl = first_has_nccl};
  placements[1] = {.host = "b", .node = 1, .device = "gpu-2", .has_nccl = second_has_nccl};
  return placements;
}

TEST(CommunicatorChoice, TakesNcclIfEveryRankHasIt) {
  const CommunicatorChoice choice = choose_communicator(two_placements(true, true));
  EXPECT_TRUE(choice.nccl);
  EXPECT_EQ(choice.remark, "") << "the devices are not connected yet";
  EXPECT_FALSE(choose_communicator(two_placements(true, false)).nccl);
}

TEST(CommunicatorChoice, SaysWhichNcclAndHowFast) {
  const CommunicatorChoice choice = nccl_choice("2.28.9", 142.36e9);
  EXPECT_TRUE(choice.nccl);
  EXPECT_EQ(choice.remark, "ranks exchange through NCCL 2.28.9, which sums 64 MiB at 142 GB/s per GPU");
  EXPECT_EQ(choice.bytes_per_second, 142.36e9);
}

TEST(CommunicatorChoice, IsMpiIfTheDevicesCannotBeConnectedUnlessNcclIsNamed) {
  const CommunicatorChoice choice = choice_without_nccl("auto", "NCCL: no route");
  EXPECT_FALSE(choice.nccl);
  EXPECT_EQ(choice.remark, "ranks exchange through MPI, which is slower: NCCL: no route");
  EXPECT_THAT(tests::error_of([] { choice_without_nccl("nccl", "NCCL: no route"); }),
              HasSubstr("NCCL: no route; `communicator mpi` exchanges"));
}

TEST(CommunicatorChoice, NamesTheRankThatLacksNccl) {
  EXPECT_THAT(choose_communicator(two_placements(true, false)).remark,
              HasSubstr("NCCL was found on rank 0, and not on rank 1 on b"));
  EXPECT_THAT(choose_communicator(two_placements(false, true)).remark,
              HasSubstr("NCCL was found on rank 1, and not on rank 0 on a"));
  EXPECT_THAT(choose_communicator(two_placements(false, false)).remark, HasSubstr("mylos doctor"));
}

TEST(CommunicatorChoice, SaysNothingWithoutDevicesOrOtherRanks) {
  std::vector<RankPlacement> placements = two_placements(true, true);
  EXPECT_EQ(choose_communicator({placements.front()}).remark, "");
  EXPECT_FALSE(choose_communicator({placements.front()}).nccl);
  placements[1].device.clear();
  EXPECT_FALSE(choose_communicator(placements).nccl);
  EXPECT_EQ(choose_communicator(placements).remark, "");
}

}  // namespace
}  // namespace mylos::parallel
