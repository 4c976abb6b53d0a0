#include "parallel/communicator/trial.hpp"

#include "tests/parallel/communicator/told_operation.hpp"
#include "tests/support/temporary.hpp"
#include "tests/support/waiting.hpp"

#include <gmock/gmock.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>

/// Operations of a trial may fail or hang, and the communication thread goes on.
namespace mylos::parallel {
namespace {

using Order = Told::Order;
using ::testing::HasSubstr;

constexpr std::chrono::hours never{1};
constexpr std::chrono::milliseconds soon{100};

class TrialTest : public ::testing::Test {
 protected:
  std::shared_ptr<Told> submit(const std::shared_ptr<Trial>& trial, const char* what) {
    auto operation = std::make_shared<Told>(what, &stream_);
    thread.submit(std::make_shared<TriedOperation>(operation, trial));
    return operation;
  }
  void expect_that_others_go_on() {
    const auto other = std::make_shared<Told>("another sum");
    other->order = Order::end;
    thread.submit(other);
    other->wait_on_host();
    thread.expect_no_failure();
  }

  CommunicationThread thread;

 private:
  int stream_ = 0;
};

TEST_F(TrialTest, OperationsThatEndAreThoseOfAnyOther) {
  const auto trial = std::make_shared<Trial>(never);
  const auto first = submit(trial, "first sum"), second = submit(trial, "second sum");
  first->order = Order::launch;
  second->order = Order::end;
  while (!second->begun) std::this_thread::yield();  // it is launched after the first one
  EXPECT_FALSE(second->done());
  first->order = Order::end;
  first->wait_on_host();
  second->wait_on_host();
  trial->expect_no_failure();
  EXPECT_FALSE(first->stopped);
  thread.finish();
}

TEST_F(TrialTest, AFailureStopsTheOperationAndAllLaterOnesOfTheTrial) {
  const auto trial = std::make_shared<Trial>(never);
  const auto first = submit(trial, "first sum"), second = submit(trial, "second sum");
  first->order = Order::fail;
  EXPECT_THAT(tests::error_of([&] { first->wait_on_host(); }), HasSubstr("first sum: the network is down"));
  EXPECT_THAT(tests::error_of([&] { second->wait_on_host(); }), HasSubstr("first sum: the network is down"));
  EXPECT_TRUE(first->stopped);
  EXPECT_FALSE(second->begun);
  EXPECT_EQ(first->was_done_when_given_up, 0) << "given up before anybody hears";
  EXPECT_EQ(second->was_done_when_given_up, 0);
  EXPECT_THAT(tests::error_of([&] { trial->expect_no_failure(); }), HasSubstr("the network is down"));
  expect_that_others_go_on();
}

TEST_F(TrialTest, WhatDoesNotEndIsStoppedAtTheDeadline) {
  for (const Order order : {Order::wait, Order::launch}) {
    const auto trial = std::make_shared<Trial>(soon);
    const auto operation = submit(trial, "sum");
    operation->order = order;
    EXPECT_THROW(operation->wait_on_host(), TrialTimeout);
    EXPECT_TRUE(operation->stopped);
    expect_that_others_go_on();
  }
}

TEST_F(TrialTest, AnOperationThatDoesNotStopInTimeFailsAllOthers) {
  const auto trial = std::make_shared<Trial>(soon);
  const auto operation = submit(trial, "sum");
  operation->stops = false;
  operation->order = Order::fail;
  std::string error;
  EXPECT_TRUE(tests::wait_until([&] {
    error = tests::error_of([&] { thread.expect_no_failure(); });
    return error.find("sum: stopped, but has not ended") != std::string::npos;
  })) << error;
  operation->stops = true;
  operation->wait_for_its_end();
}

}  // namespace
}  // namespace mylos::parallel
