#include "parallel/launch/watch_tree.hpp"

#include <gmock/gmock.h>

namespace mylos::parallel {
namespace {

using ::testing::ElementsAre;

TEST(WatchTree, EachRankButTheRootIsAChildOfItsParent) {
  for (const std::size_t size : {1u, 2u, 5u, 6u, 21u, 1000u}) {
    for (const std::size_t root : {std::size_t{0}, size / 2, size - 1}) {
      const WatchTree tree(size, root);
      std::vector<std::size_t> parents(size, size);
      for (std::size_t rank = 0; rank < size; ++rank) {
        EXPECT_LE(tree.children(rank).size(), WatchTree::arity);
        for (const std::size_t child : tree.children(rank)) {
          EXPECT_EQ(parents[child], size) << "two parents";
          parents[child] = rank;
          EXPECT_EQ(tree.level(child), tree.level(rank) + 1);
        }
      }
      for (std::size_t rank = 0; rank < size; ++rank) {
        EXPECT_LE(tree.level(rank), tree.height());
        EXPECT_EQ(tree.parent(rank).value_or(size), parents[rank]);
        EXPECT_EQ(tree.parent(rank).has_value(), rank != root);
      }
    }
  }
}

TEST(WatchTree, ItsHeightIsALogarithm) {
  EXPECT_EQ(WatchTree(1, 0).height(), 0u);
  EXPECT_EQ(WatchTree(5, 0).height(), 1u);
  EXPECT_EQ(WatchTree(6, 3).height(), 2u);
  EXPECT_EQ(WatchTree(16384, 0).height(), 7u);
}

TEST(WatchTree, ParentsFromTheFirstRankOnAreLower) {
  const WatchTree tree(300, 0);
  for (std::size_t rank = 1; rank < 300; ++rank) EXPECT_LT(*tree.parent(rank), rank);
}

TEST(WatchTree, HeadsBeginWithTheFirstRankAndLieFarApart) {
  EXPECT_THAT(watch_heads(1000), ElementsAre(0, 500, 250, 750));
  EXPECT_THAT(watch_heads(4), ElementsAre(0, 2, 1, 3));
  EXPECT_THAT(watch_heads(3), ElementsAre(0, 1));
  EXPECT_THAT(watch_heads(2), ElementsAre(0, 1));
}

}  // namespace
}  // namespace mylos::parallel
