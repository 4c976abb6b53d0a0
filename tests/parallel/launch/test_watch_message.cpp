#include "parallel/launch/watch_message.hpp"

#include <gmock/gmock.h>

#include <stdexcept>
#include <string>

namespace mylos::parallel {
namespace {

TEST(WatchMessage, ArrivesAsItWasSent) {
  WatchMessage message{.kind = WatchMessage::Kind::report, .root = 5, .number = 9, .seconds = 2.5};
  message.answers.push_back(
      {3, {"host", RankState::Activity::files, 31, "all-reduce of layer 3 gradients", 4096, 2, 7, 12.5, 3.5, 2.5}});
  message.answers.push_back({4, {"host", RankState::Activity::waiting, 30, std::string(300, 'x'), 1, 1, 8, 1.0, 0.0}});
  const WatchMessage arrived = watch_message_in(bytes_of(message));
  EXPECT_EQ(arrived.kind, message.kind);
  EXPECT_EQ(arrived.root, 5u);
  EXPECT_EQ(arrived.number, 9u);
  EXPECT_EQ(arrived.seconds, 2.5);
  ASSERT_EQ(arrived.answers.size(), 2u);
  EXPECT_EQ(arrived.answers[0].rank, 3u);
  const RankState& state = arrived.answers[0].state;
  EXPECT_EQ(state.host, "");
  EXPECT_EQ(state.activity, RankState::Activity::files);
  EXPECT_EQ(state.step, 31u);
  EXPECT_EQ(state.operation, "all-reduce of layer 3 gradients");
  EXPECT_EQ(state.bytes, 4096u);
  EXPECT_EQ(state.group, 2u);
  EXPECT_EQ(state.sequence, 7u);
  EXPECT_EQ(state.seconds, 12.5);
  EXPECT_EQ(state.file_seconds, 3.5);
  EXPECT_EQ(state.progress_seconds, 2.5);
  EXPECT_EQ(arrived.answers[1].state.operation, std::string(sent_operation, 'x'));
}

TEST(WatchMessage, OneOfAnotherLengthIsRefused) {
  std::vector<std::byte> bytes = bytes_of({.kind = WatchMessage::Kind::report, .answers = {{}}});
  bytes.pop_back();
  EXPECT_THROW(watch_message_in(bytes), std::invalid_argument);
  bytes.resize(3);
  EXPECT_THROW(watch_message_in(bytes), std::invalid_argument);
}

}  // namespace
}  // namespace mylos::parallel
