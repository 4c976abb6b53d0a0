#include "parallel/communicator/agreement.hpp"
#include "parallel/communicator/communication_thread.hpp"
#include "parallel/communicator/exchanges/exchange_size.hpp"
#include "parallel/communicator/nccl/nccl_device.hpp"
#include "parallel/communicator/nccl/nccl_streams.hpp"
#include "tests/support/launch.hpp"
#include "tests/support/waiting.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

/// Operations over NCCL are ordered on the device, not by the host: they wait for earlier launches, and later launches
/// wait for them.
namespace mylos::parallel {
namespace {

constexpr std::size_t count = 1000;

/// A kernel that writes ones to `to`, with a delay and not before the host sets `may_go`.
struct Fill {
  double* to;
  std::atomic<bool> may_go{true};
};

void fill(void* argument) {
  auto* const kernel = static_cast<Fill*>(argument);
  kernel->may_go.wait(false);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  std::fill_n(kernel->to, count, 1.0);
}

struct Copy {
  const double* from;
  std::vector<double> to = std::vector<double>(count);
};

void copy(void* argument) {
  auto* const kernel = static_cast<Copy*>(argument);
  std::copy_n(kernel->from, count, kernel->to.data());
}

class NcclOrder : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (ranks->size() == 1) GTEST_SKIP() << "a group of one exchanges nothing";
  }

  /// Connects the ranks, then launches a kernel that waits for release().
  void hold(Fill& kernel) {
    ranks->all_reduce(space, buffer, "connection").wait(space);
    space.fence();
    kernel.may_go = false;
    ASSERT_EQ(cudaLaunchHostFunc(stream_of(space), fill, &kernel), cudaSuccess);
  }
  static void release(Fill& kernel) {
    kernel.may_go = true;
    kernel.may_go.notify_all();
  }

  std::unique_ptr<Communicator> ranks = tests::launch().make_nccl_ranks({.in_order = GetParam()});
  ExecutionSpace space;
  Vector<double> data{"test::data", count};
  const Buffer buffer{data.data(), count, ElementType::float64, MemoryKind::device};
  const double sum_of_ones = static_cast<double>(ranks->size());
};

TEST_P(NcclOrder, OperationsBeginAfterAndEndBeforeTheirNeighboursOnTheStream) {
  const cudaStream_t stream = stream_of(space);
  Fill ones{data.data()};
  Copy sums{data.data()};
  ranks->all_reduce(space, buffer, "connection").wait(space);
  for (int turn = 0; turn < 3; ++turn) {
    ones.may_go = false;
    ASSERT_EQ(cudaLaunchHostFunc(stream, fill, &ones), cudaSuccess);
    const Event event = ranks->all_reduce(space, buffer, "test");
    EXPECT_FALSE(event.done());
    ones.may_go = true;
    ones.may_go.notify_all();
    event.wait(space);
    ASSERT_EQ(cudaLaunchHostFunc(stream, copy, &sums), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(sums.to, std::vector<double>(count, sum_of_ones));
  }
}

TEST_P(NcclOrder, AnEndIsNotToldBeforeTheMemoryIsFree) {
  Fill ones{data.data()};
  ASSERT_EQ(cudaLaunchHostFunc(stream_of(space), fill, &ones), cudaSuccess);
  const Event event = ranks->all_reduce(space, buffer, "test");
  event.wait_for_its_end();
  EXPECT_EQ(std::vector<double>(data.data(), data.data() + count), std::vector<double>(count, sum_of_ones));
}

TEST_P(NcclOrder, ADiscardedOperationPrecedesLaterLaunchesAndTheHostDoesNotWait) {
  Fill ones{data.data()};
  Copy sums{data.data()};
  ASSERT_NO_FATAL_FAILURE(hold(ones));
  const Event event = ranks->all_reduce(space, buffer, "test");
  event.discard(space);
  EXPECT_FALSE(event.done());
  ASSERT_EQ(cudaLaunchHostFunc(stream_of(space), copy, &sums), cudaSuccess);
  release(ones);
  space.fence();
  EXPECT_EQ(sums.to, std::vector<double>(count, sum_of_ones));
}

TEST_P(NcclOrder, OperationsAreLaunchedBeforeThoseBeforeThemHaveEnded) {
  constexpr std::size_t most = CommunicationThread::most_under_way;
  Fill ones{data.data()};
  ranks->all_reduce(space, buffer, "connection").wait(space);
  space.fence();
  std::vector<Vector<double>> arrays;
  for (std::size_t i = 0; i < most + 2; ++i) {
    Kokkos::deep_copy(arrays.emplace_back("test::array", count), static_cast<double>(i));
  }
  const std::size_t before = stand_in_operations();
  ones.may_go = false;
  ASSERT_EQ(cudaLaunchHostFunc(stream_of(space), fill, &ones), cudaSuccess);
  std::vector<Event> events;
  for (const Vector<double>& each : arrays) {
    events.push_back(ranks->all_reduce(space, {each.data(), count, ElementType::float64, MemoryKind::device}, "test"));
  }
  // No operation has started on the device yet. An ordered sum exchanges twice: it scatters and gathers the parts.
  const std::size_t launched = before + most * (GetParam() && ranks->size() > 1 ? 2 : 1);
  tests::wait_until([&] { return stand_in_operations() >= launched; });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(stand_in_operations(), launched);
  for (const Event& event : events) EXPECT_FALSE(event.done());
  ones.may_go = true;
  ones.may_go.notify_all();
  for (const Event& event : events) event.wait(space);
  space.fence();
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const std::vector<double> sums(arrays[i].data(), arrays[i].data() + count);
    EXPECT_EQ(sums, std::vector<double>(count, sum_of_ones * static_cast<double>(i)));
  }
}

TEST_P(NcclOrder, HostsExchangeWhileAnOperationOnTheDeviceWaits) {
  Fill ones{data.data()};
  ASSERT_NO_FATAL_FAILURE(hold(ones));
  const Event before = ranks->all_reduce(space, buffer, "test");
  const auto size = static_cast<std::int64_t>(ranks->size());
  EXPECT_EQ(maximum(*ranks, static_cast<std::int64_t>(ranks->rank())), size - 1);
  EXPECT_FALSE(before.done());
  release(ones);
  before.wait(space);
  space.fence();
  EXPECT_EQ(std::vector<double>(data.data(), data.data() + count), std::vector<double>(count, sum_of_ones));
}

INSTANTIATE_TEST_SUITE_P(All, NcclOrder, ::testing::Bool(),
                         [](const auto& info) { return std::string(info.param ? "tree" : "library"); });

TEST(NcclPieces, OfALongArrayAreSummedEach) {
  const std::unique_ptr<Communicator> ranks = tests::launch().make_nccl_ranks({.in_order = true});
  if (ranks->size() < 4) GTEST_SKIP() << "pieces are too long between so few ranks";
  const ExecutionSpace space;
  // Each rank's part is one element longer than a bucket.
  const std::size_t bucket = device_bucket(default_bucket);
  const std::size_t part = exchange_size(apart(ranks->size()), bucket).message_bytes / sizeof(std::int64_t) + 1;
  const std::size_t all = part * ranks->size();
  const Vector<std::int64_t> values = uninitialized<std::int64_t>("test::values", all);
  const auto mine = static_cast<std::int64_t>(ranks->rank()) + 1;
  for (std::size_t i = 0; i < all; ++i) values[i] = mine * static_cast<std::int64_t>(i);
  ranks->all_reduce(space, {values.data(), all, ElementType::int64, MemoryKind::device}, "test").wait(space);
  space.fence();
  const auto size = static_cast<std::int64_t>(ranks->size()), factor = size * (size + 1) / 2;
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < all; ++i) wrong += values[i] == factor * static_cast<std::int64_t>(i) ? 0 : 1;
  EXPECT_EQ(wrong, 0u);
}

TEST(NcclPieces, OfAVeryLongArrayDoNotFillTheStream) {
  const std::unique_ptr<Communicator> ranks = tests::launch().make_nccl_ranks({.in_order = true});
  if (ranks->size() != 2) GTEST_SKIP() << "the same at other numbers of ranks";
  const ExecutionSpace space;
  ranks->set_bucket(1);
  const std::size_t piece = exchange_size(apart(2), 1).message_bytes / sizeof(std::int64_t);
  const Vector<std::int64_t> values("test::values", 2 * 500 * piece);
  Kokkos::deep_copy(values, 3);
  ranks->all_reduce(space, {values.data(), 20, ElementType::int64, MemoryKind::device}, "connection").wait(space);
  Kokkos::deep_copy(values, 3);
  std::vector<double> other(count);
  Fill ones{other.data()};
  ones.may_go = false;
  ASSERT_EQ(cudaLaunchHostFunc(stream_of(space), fill, &ones), cudaSuccess);
  const Event event =
      ranks->all_reduce(space, {values.data(), values.size(), ElementType::int64, MemoryKind::device}, "test");
  tests::wait_until([] { return stand_in_longest_queue() >= NcclDevice::most_launches; });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_LE(stand_in_longest_queue(), NcclDevice::most_launches + 16);  // events between launches
  ones.may_go = true;
  ones.may_go.notify_all();
  event.wait(space);
  space.fence();
  EXPECT_EQ(std::count(values.data(), values.data() + values.size(), 6), static_cast<std::ptrdiff_t>(values.size()));
  ranks->set_bucket(default_bucket);
}

}  // namespace
}  // namespace mylos::parallel
