#include "parallel/launch/error_announcement.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <numeric>
#include <random>
#include <vector>

namespace mylos::parallel {
namespace {

/// Ranks simulated in one process that announce errors to each other.
class FailingGroup {
 public:
  explicit FailingGroup(std::size_t size) {
    for (std::size_t rank = 0; rank < size; ++rank) {
      ranks_.emplace_back(size, rank, [this, rank](std::size_t to, const WatchMessage& message) {
        EXPECT_EQ(message.kind, WatchMessage::Kind::error);
        under_way_.push_back({rank, to, message.root});
        ++messages_;
      });
    }
  }

  void announce(std::size_t rank) { ranks_[rank].announce(); }
  /// Delivers one of the sent messages. Returns whether there was one.
  bool deliver() {
    if (under_way_.empty()) return false;
    std::swap(under_way_.front(), under_way_[random_() % under_way_.size()]);
    const Message message = under_way_.front();
    under_way_.pop_front();
    ranks_[message.to].receive(message.from, message.failed);
    return true;
  }

  std::size_t lowest(std::size_t rank) const { return ranks_[rank].lowest(); }
  std::size_t messages() const { return messages_; }

 private:
  struct Message {
    std::size_t from, to, failed;
  };
  std::deque<ErrorAnnouncement> ranks_;
  std::deque<Message> under_way_;
  std::size_t messages_ = 0;
  std::mt19937 random_{7};
};

TEST(ErrorAnnouncement, OneErrorReachesAllInOneMessageEach) {
  for (const std::size_t size : {2u, 5u, 100u, 16384u}) {
    for (const std::size_t failed : {std::size_t{0}, size / 3, size - 1}) {
      FailingGroup ranks(size);
      ranks.announce(failed);
      while (ranks.deliver()) {
      }
      for (std::size_t rank = 0; rank < size; ++rank) ASSERT_EQ(ranks.lowest(rank), failed);
      EXPECT_EQ(ranks.messages(), size - 1);
    }
  }
}

TEST(ErrorAnnouncement, WhereAllFailMessagesGrowWithTheRanks) {
  for (const std::size_t size : {2u, 5u, 100u, 16384u}) {
    FailingGroup ranks(size);
    for (std::size_t rank = 0; rank < size; ++rank) ranks.announce(rank);
    while (ranks.deliver()) {
    }
    EXPECT_EQ(ranks.lowest(0), 0u);
    for (std::size_t rank = 1; rank < size; ++rank) ASSERT_LT(ranks.lowest(rank), rank);
    EXPECT_EQ(ranks.messages(), 2 * (size - 1));
  }
}

TEST(ErrorAnnouncement, OfSeveralOnlyTheLowestHearsOfNoneBelowIt) {
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    const std::size_t size = 2 + random() % 200;
    FailingGroup ranks(size);
    std::vector<std::size_t> failing(size);
    std::iota(failing.begin(), failing.end(), std::size_t{0});
    std::shuffle(failing.begin(), failing.end(), random);
    failing.resize(1 + random() % size);
    for (const std::size_t rank : failing) {
      ranks.announce(rank);
      for (std::size_t i = random() % 4; i > 0; --i) ranks.deliver();
    }
    while (ranks.deliver()) {
    }
    const std::size_t lowest = *std::min_element(failing.begin(), failing.end());
    for (const std::size_t rank : failing) {
      if (rank == lowest) {
        EXPECT_EQ(ranks.lowest(rank), lowest);
      } else {
        EXPECT_LT(ranks.lowest(rank), rank);
      }
    }
    EXPECT_LE(ranks.messages(), 2 * size * (1 + WatchTree(size, 0).height()));
  }
}

}  // namespace
}  // namespace mylos::parallel
