#include "parallel/communicator/communication_thread.hpp"

#include "tests/parallel/communicator/told_operation.hpp"
#include "tests/support/temporary.hpp"
#include "tests/support/waiting.hpp"

#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace mylos::parallel {
namespace {

using ::testing::HasSubstr;

using Order = Told::Order;

/// Waits, to allow time for an error to appear.
void wait_for_a_mistake() { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }

/// Submits `count` operations of `stream` to `thread`.
std::vector<std::shared_ptr<Told>> submit_to(CommunicationThread& thread, std::size_t count, const void* stream) {
  std::vector<std::shared_ptr<Told>> operations;
  for (std::size_t i = 0; i < count; ++i) {
    thread.submit(operations.emplace_back(std::make_shared<Told>("sum " + std::to_string(i), stream)));
  }
  return operations;
}

/// Submits an operation on host memory to `thread`.
std::shared_ptr<Told> submit_on_host(CommunicationThread& thread) {
  auto operation = std::make_shared<Told>("agreement", nullptr, true);
  thread.submit(operation);
  return operation;
}

void end_all(const std::vector<std::shared_ptr<Told>>& operations) {
  for (const auto& each : operations) each->order = Order::end;
  for (const auto& each : operations) Event(each).wait_for_its_end();
}

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

TEST(CommunicationThread, LaunchesAheadOnAStreamUpToABound) {
  CommunicationThread thread;
  const int stream = 0;
  const auto operations = submit_to(thread, CommunicationThread::most_under_way + 2, &stream);
  for (std::size_t i = 0; i < CommunicationThread::most_under_way; ++i) {
    tests::wait_until([&] { return operations[i]->begun.load(); });
    if (i < 4) wait_for_a_mistake();
    // The previous operation has been launched, but has not ended.
    EXPECT_FALSE(operations[i + 1]->begun);
    operations[i]->order = Order::launch;
  }
  wait_for_a_mistake();
  EXPECT_FALSE(operations[CommunicationThread::most_under_way]->begun);
  // Operations end in order, also when later ones have been advanced.
  operations[1]->order = Order::end;
  wait_for_a_mistake();
  EXPECT_FALSE(operations[1]->done());
  operations[0]->order = Order::end;
  Event(operations[1]).wait_for_its_end();
  EXPECT_TRUE(operations[0]->done());
  tests::wait_until([&] { return operations[CommunicationThread::most_under_way]->begun.load(); });
  end_all(operations);
  thread.finish();
}

TEST(CommunicationThread, WaitsForTheEndBeforeAnotherStream) {
  CommunicationThread thread;
  const int stream = 0, another = 0;
  for (const void* const after : {static_cast<const void*>(nullptr), static_cast<const void*>(&another)}) {
    const auto first = submit_to(thread, 2, &stream), second = submit_to(thread, 1, after),
               third = submit_to(thread, 1, &stream);
    for (const auto& each : first) each->order = Order::launch;
    tests::wait_until([&] { return first[1]->begun.load(); });
    first[0]->order = Order::end;
    Event(first[0]).wait_for_its_end();
    wait_for_a_mistake();
    EXPECT_FALSE(second[0]->begun);
    first[1]->order = Order::end;
    tests::wait_until([&] { return second[0]->begun.load(); });
    EXPECT_TRUE(first[1]->done());
    second[0]->order = Order::launch;
    wait_for_a_mistake();
    EXPECT_FALSE(third[0]->begun);
    end_all(second);
    end_all(third);
  }
  thread.finish();
}

TEST(CommunicationThread, OperationsOnHostMemoryAndOnAStreamDoNotWaitForEachOther) {
  CommunicationThread thread;
  const int stream = 0;
  const auto first = submit_to(thread, 1, &stream);
  const auto on_host = submit_on_host(thread), later_on_host = submit_on_host(thread);
  // Not even for a launch.
  tests::wait_until([&] { return on_host->begun.load(); });
  wait_for_a_mistake();
  EXPECT_FALSE(later_on_host->begun);
  on_host->order = Order::end;
  Event(on_host).wait_for_its_end();
  EXPECT_FALSE(first[0]->done());
  tests::wait_until([&] { return later_on_host->begun.load(); });
  const auto second = submit_to(thread, 1, &stream);
  wait_for_a_mistake();
  EXPECT_FALSE(second[0]->begun) << "the one before it on the stream has not been launched";
  first[0]->order = Order::launch;
  tests::wait_until([&] { return second[0]->begun.load(); });
  end_all(first);
  end_all(second);
  EXPECT_FALSE(later_on_host->done());
  end_all({later_on_host});
  thread.finish();
}

TEST(CommunicationThread, AnOperationOfNeitherKindRunsAlone) {
  CommunicationThread thread;
  const int stream = 0;
  const auto on_stream = submit_to(thread, 1, &stream);
  const auto on_host = submit_on_host(thread);
  const auto alone = submit_to(thread, 1, nullptr);
  on_stream[0]->order = Order::launch;
  tests::wait_until([&] { return on_host->begun.load(); });
  end_all({on_host});
  wait_for_a_mistake();
  EXPECT_FALSE(alone[0]->begun);
  end_all(on_stream);
  tests::wait_until([&] { return alone[0]->begun.load(); });
  const auto later_on_host = submit_on_host(thread);
  wait_for_a_mistake();
  EXPECT_FALSE(later_on_host->begun);
  end_all(alone);
  tests::wait_until([&] { return later_on_host->begun.load(); });
  const auto alone_again = submit_to(thread, 1, nullptr);
  wait_for_a_mistake();
  EXPECT_FALSE(alone_again[0]->begun);
  end_all({later_on_host});
  tests::wait_until([&] { return alone_again[0]->begun.load(); });
  const auto later = submit_to(thread, 1, &stream);
  wait_for_a_mistake();
  EXPECT_FALSE(later[0]->begun);
  end_all(alone_again);
  end_all(later);
  thread.finish();
}

TEST(CommunicationThread, AnErrorOfAnyThatIsLaunchedEndsAllAndNamesIt) {
  CommunicationThread thread;
  const int stream = 0;
  const auto operations = submit_to(thread, 3, &stream);
  for (const auto& each : operations) each->order = Order::launch;
  tests::wait_until([&] { return operations[2]->begun.load(); });
  operations[1]->order = Order::fail;
  for (const auto& each : operations) {
    EXPECT_THAT(tests::error_of([&] { each->wait_on_host(); }), HasSubstr("sum 1: the network is down"));
    EXPECT_TRUE(each->stopped);
    EXPECT_EQ(each->was_done_when_given_up, 0);
  }
}

TEST(CommunicationThread, AFailureIsSeenBeforeOperationsAreStopped) {
  CommunicationThread thread;
  const auto operation = std::make_shared<Told>("sum");
  std::string seen;
  operation->on_stop = [&] { seen = tests::error_of([&] { thread.expect_no_failure(); }); };
  thread.submit(operation);
  tests::wait_until([&] { return operation->begun.load(); });
  thread.expect_no_failure();
  operation->order = Order::fail;
  Event(operation).wait_for_its_end();
  EXPECT_THAT(seen, HasSubstr("sum: the network is down"));
}

/// Records the first running operation that the watch sees.
class Looks final : public Watch {
 public:
  void look(const Waiting& waiting) override {
    const std::lock_guard lock(mutex_);
    if (!waiting.under_way) return;
    seen_ = waiting.name.what;
    seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - waiting.since).count();
  }
  std::string seen() {
    const std::lock_guard lock(mutex_);
    return seen_;
  }
  /// Since when it was under way, at the last look.
  double seconds() {
    const std::lock_guard lock(mutex_);
    return seconds_;
  }

 private:
  std::mutex mutex_;
  std::string seen_;
  double seconds_ = 0.0;
};

TEST(CommunicationThread, TheWatchSeesTheFirstThatHasNotEnded) {
  Looks watch;
  CommunicationThread thread;
  thread.set_watch(&watch);
  const int stream = 0;
  const auto operations = submit_to(thread, 3, &stream);
  for (const auto& each : operations) each->order = Order::launch;
  tests::wait_until([&] { return operations[2]->begun.load(); });
  tests::wait_until([&] { return watch.seen() == "sum 0"; });
  operations[0]->order = Order::end;
  tests::wait_until([&] { return watch.seen() == "sum 1"; });
  end_all(operations);
  thread.finish();
}

TEST(CommunicationThread, TheWatchSeesTheOlderOfTwoKinds) {
  Looks watch;
  CommunicationThread thread;
  thread.set_watch(&watch);
  const int stream = 0;
  const auto on_stream = submit_to(thread, 1, &stream);
  const auto on_host = submit_on_host(thread);
  tests::wait_until([&] { return on_host->begun.load(); });
  tests::wait_until([&] { return watch.seen() == "sum 0"; });
  std::this_thread::sleep_for(std::chrono::milliseconds(150));
  end_all(on_stream);
  tests::wait_until([&] { return watch.seen() == "agreement"; });
  EXPECT_GE(watch.seconds(), 0.15) << "the time since it began, not since the sum ended";
  end_all({on_host});
  thread.finish();
}

/// Records the last failure that the watch sees.
class FailureLooks final : public Watch {
 public:
  void look(const Waiting& waiting) override {
    if (waiting.failure == nullptr) return;
    const std::lock_guard lock(mutex_);
    seen_ = waiting.failure->error;
    ++looks_;
  }
  std::size_t looks() {
    const std::lock_guard lock(mutex_);
    return looks_;
  }
  std::string seen() {
    const std::lock_guard lock(mutex_);
    return seen_;
  }

 private:
  std::mutex mutex_;
  std::size_t looks_ = 0;
  std::string seen_;
};

TEST(CommunicationThread, TheWatchGoesOnWhileOperationsStopAfterAFailure) {
  FailureLooks watch;
  CommunicationThread thread;
  thread.set_watch(&watch);
  const int stream = 0;
  const auto operations = submit_to(thread, 2, &stream);
  operations[0]->stops = false;
  operations[0]->order = Order::launch;
  tests::wait_until([&] { return operations[1]->begun.load(); });
  operations[1]->order = Order::fail;
  tests::wait_until([&] { return watch.looks() >= 2; });
  EXPECT_EQ(watch.seen(), "sum 1: the network is down");
  for (const auto& each : operations) {
    EXPECT_TRUE(each->stopped);
    EXPECT_FALSE(each->done());
    EXPECT_EQ(each->was_done_when_given_up, -1);
  }
  operations[0]->stops = true;
  for (const auto& each : operations) Event(each).wait_for_its_end();
  EXPECT_TRUE(operations[0]->failed() && operations[1]->failed());
  thread.finish();
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
