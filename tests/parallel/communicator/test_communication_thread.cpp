#include "parallel/communicator/communication_thread.hpp"

#include "tests/support/temporary.hpp"

#include <gmock/gmock.h>

#include <atomic>
#include <memory>
#include <stdexcept>

namespace mylos::parallel {
namespace {

using ::testing::HasSubstr;

/// Waits until it is told to end, or to fail.
class Told final : public QueuedOperation {
 public:
  enum class Order { wait, end, fail };

  explicit Told(const char* what) : QueuedOperation({what, 0, 0, 0}) {}

  Progress advance() override {
    begun = true;
    if (order == Order::fail) throw std::runtime_error("the network is down");
    return order == Order::end ? Progress::done : Progress::waiting;
  }
  void give_up() noexcept override { was_done_when_given_up = done() ? 1 : 0; }

  std::atomic<Order> order{Order::wait};
  std::atomic<bool> begun{false};
  std::atomic<int> was_done_when_given_up{-1};
};

TEST(CommunicationThread, AnOperationThatEndsIsNotGivenUp) {
  CommunicationThread thread;
  const auto operation = std::make_shared<Told>("sum");
  thread.submit(operation);
  operation->order = Told::Order::end;
  Event(operation).wait_for_its_end();
  EXPECT_TRUE(operation->done());
  EXPECT_FALSE(operation->failed());
  thread.finish();
  EXPECT_EQ(operation->was_done_when_given_up, -1);
}

TEST(CommunicationThread, OneThatFailsIsGivenUpBeforeAnybodyHears) {
  CommunicationThread thread;
  const auto first = std::make_shared<Told>("sum"), second = std::make_shared<Told>("gather");
  thread.submit(first);
  thread.submit(second);
  first->order = Told::Order::fail;
  EXPECT_THAT(tests::error_of([&] { first->wait_on_host(); }), HasSubstr("sum: the network is down"));
  EXPECT_EQ(first->was_done_when_given_up, 0);
  EXPECT_THAT(tests::error_of([&] { second->wait_on_host(); }), HasSubstr("sum: the network is down"));
  EXPECT_FALSE(second->begun);
  EXPECT_EQ(second->was_done_when_given_up, 0);
  Event(second).wait_for_its_end();  // and does not throw
}

TEST(CommunicationThread, WhatIsAbandonedIsGivenUp) {
  CommunicationThread thread;
  const auto operation = std::make_shared<Told>("sum");
  thread.submit(operation);
  thread.abandon();
  EXPECT_TRUE(operation->failed());
  EXPECT_EQ(operation->was_done_when_given_up, 0);
}

}  // namespace
}  // namespace mylos::parallel
