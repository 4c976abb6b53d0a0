#include "parallel/launch/communicator_choice.hpp"

#include <gmock/gmock.h>

namespace mylos::parallel {
namespace {

using ::testing::HasSubstr;

std::vector<RankPlace> two_places(bool first_has_nccl, bool second_has_nccl) {
  std::vector<RankPlace> places(2);
  places[0] = {.host = "a", .device = "gpu-1", .has_nccl = first_has_nccl};
  places[1] = {.host = "b", .node = 1, .device = "gpu-2", .has_nccl = second_has_nccl};
  return places;
}

TEST(CommunicatorChoice, TakesNcclOnceItIsValidatedAndEveryRankHasIt) {
  const CommunicatorChoice choice = choose_communicator(two_places(true, true), true);
  EXPECT_TRUE(choice.nccl);
  EXPECT_EQ(choice.remark, "ranks exchange through NCCL");
  EXPECT_FALSE(choose_communicator(two_places(true, false), true).nccl);
}

TEST(CommunicatorChoice, SaysHowToAskForNcclUntilItIsValidated) {
  const CommunicatorChoice choice = choose_communicator(two_places(true, true), false);
  EXPECT_FALSE(choice.nccl);
  EXPECT_THAT(choice.remark, HasSubstr("--communicator nccl"));
}

TEST(CommunicatorChoice, NamesTheRankThatLacksNccl) {
  EXPECT_THAT(choose_communicator(two_places(true, false), true).remark,
              HasSubstr("NCCL was found on rank 0, and not on rank 1 on b"));
  EXPECT_THAT(choose_communicator(two_places(false, true), true).remark,
              HasSubstr("NCCL was found on rank 1, and not on rank 0 on a"));
  EXPECT_THAT(choose_communicator(two_places(false, false), true).remark, HasSubstr("mylos doctor"));
}

TEST(CommunicatorChoice, SaysNothingWithoutDevicesOrOtherRanks) {
  std::vector<RankPlace> places = two_places(true, true);
  EXPECT_EQ(choose_communicator({places.front()}, true).remark, "");
  EXPECT_FALSE(choose_communicator({places.front()}, true).nccl);
  places[1].device.clear();
  EXPECT_FALSE(choose_communicator(places, true).nccl);
  EXPECT_EQ(choose_communicator(places, true).remark, "");
}

}  // namespace
}  // namespace mylos::parallel
