#include "parallel/communicator/communicator.hpp"

#include "core/base/crc32c.hpp"
#include "parallel/communicator/agreement.hpp"
#include "parallel/communicator/nccl/nccl_communicator.hpp"
#include "tests/parallel/communicator/communicator_contract.hpp"
#include "tests/support/launch.hpp"
#include "tests/support/temporary.hpp"

#include <gmock/gmock.h>

#include <memory>
#include <span>
#include <vector>

namespace mylos::parallel::contract {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

/// Several pieces per message, unless the transport has no pieces of that size.
#if !defined(MYLOS_LARGEST_ARRAY)
#define MYLOS_LARGEST_ARRAY 2200003
#endif

/// From none to the largest, including sizes that the ranks do not divide.
const std::vector<std::size_t> sizes{0, 1, 2, 3, 5, 64, 1000, 16384, 16385, 40001, MYLOS_LARGEST_ARRAY};

template <class T>
void check_all_reduce(const ExecutionSpace& space, Communicator& ranks, Order order) {
  for (const std::size_t size : sizes) {
    const Vector<T> data = on_device(values_of<T>(ranks.rank(), size, 1));
    ranks.all_reduce(space, whole(data), "test").wait(space);
    const std::vector<T> expected = converted<T>(tree_sum<T>(ranks.size(), size, 1));
    const std::vector<T> got = on_host(data);
    EXPECT_TRUE(same_sums(got, expected, ranks.size(), order)) << size << " elements";
    const std::int64_t checksum = crc32c(std::as_bytes(std::span(got)));
    EXPECT_THAT(gather(ranks, checksum), Each(checksum)) << size << " elements are not the same on all ranks";
  }
}

TEST_P(CommunicatorContract, AllReduceIsTheTreeSumBitForBit) {
  check_all_reduce<float>(space, ranks, order);
  check_all_reduce<double>(space, ranks, order);
  check_all_reduce<bfloat16>(space, ranks, order);
  check_all_reduce<std::int64_t>(space, ranks, order);
}

enum class Mine { apart, part_of_all };

/// T is the element type, and S the type of the sum.
template <class T, class S>
void check_reduce_scatter(const ExecutionSpace& space, Communicator& ranks, Order order, Mine where) {
  for (const std::size_t size : sizes) {
    const std::size_t part = size / ranks.size(), count = part * ranks.size(), begin = ranks.rank() * part;
    const Vector<T> all = on_device(values_of<T>(ranks.rank(), count, 2));
    Vector<S> mine("test::part", part);
    if constexpr (std::is_same_v<T, S>) {
      if (where == Mine::part_of_all) mine = slice(all, begin, begin + part);
    }
    ranks.reduce_scatter(space, whole(all), whole(mine), "test").wait(space);
    const std::vector<S> sum = converted<S>(tree_sum<T>(ranks.size(), count, 2));
    const std::vector<S> expected(sum.begin() + static_cast<std::ptrdiff_t>(begin),
                                  sum.begin() + static_cast<std::ptrdiff_t>(begin + part));
    EXPECT_TRUE(same_sums(on_host(mine), expected, ranks.size(), order)) << count << " elements";
  }
}

TEST_P(CommunicatorContract, ReduceScatterGivesEachRankItsPartOfTheTreeSum) {
  check_reduce_scatter<float, float>(space, ranks, order, Mine::apart);
  check_reduce_scatter<float, float>(space, ranks, order, Mine::part_of_all);
  check_reduce_scatter<double, double>(space, ranks, order, Mine::part_of_all);
  check_reduce_scatter<std::int64_t, std::int64_t>(space, ranks, order, Mine::apart);
}

TEST_P(CommunicatorContract, ReduceScatterOfBfloat16IsNotRoundedOnTheWay) {
  check_reduce_scatter<bfloat16, float>(space, ranks, order, Mine::apart);
  check_reduce_scatter<bfloat16, bfloat16>(space, ranks, order, Mine::apart);
  check_reduce_scatter<bfloat16, bfloat16>(space, ranks, order, Mine::part_of_all);
}

template <class T>
void check_all_gather(const ExecutionSpace& space, Communicator& ranks, Mine where) {
  for (const std::size_t part : sizes) {
    std::vector<T> expected;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      const std::vector<T> values = values_of<T>(rank, part, 3);
      expected.insert(expected.end(), values.begin(), values.end());
    }
    const Vector<T> all("test::all", part * ranks.size());
    Vector<T> mine = on_device(values_of<T>(ranks.rank(), part, 3));
    if (where == Mine::part_of_all) {
      const Vector<T> position = slice(all, ranks.rank() * part, (ranks.rank() + 1) * part);
      Kokkos::deep_copy(position, mine);
      mine = position;
    }
    ranks.all_gather(space, whole(mine), whole(all), "test").wait(space);
    EXPECT_TRUE(same_bytes(on_host(all), expected)) << part << " elements a rank";
  }
}

TEST_P(CommunicatorContract, AllGatherGivesAllPartsToAll) {
  check_all_gather<float>(space, ranks, Mine::apart);
  check_all_gather<float>(space, ranks, Mine::part_of_all);
  check_all_gather<bfloat16>(space, ranks, Mine::part_of_all);
  check_all_gather<std::int64_t>(space, ranks, Mine::apart);
}

TEST_P(CommunicatorContract, PaddingAtTheEndNeedNotBeExchanged) {
  for (const std::size_t size : {1u, 2u, 1000u, 40001u}) {
    // Two ranks have elements; a group of one has no padding.
    const std::size_t part = ranks.size() == 1 ? size : (2 * size + 2) / 3, capacity = part * ranks.size();
    const auto padded = [&](std::vector<float> values) {
      values.resize(size);
      values.resize(capacity);
      return values;
    };
    const auto own = [&](const std::vector<float>& values) {
      const auto begin = values.begin() + static_cast<std::ptrdiff_t>(ranks.rank() * part);
      return std::vector<float>(begin, begin + static_cast<std::ptrdiff_t>(part));
    };
    const Vector<float> all = on_device(padded(values_of<float>(ranks.rank(), size, 2)));
    const Vector<float> mine("test::part", part);
    Buffer used = whole(all);
    used.count = size;
    ranks.reduce_scatter(space, used, whole(mine), "test").wait(space);
    const std::vector<float> sum = padded(converted<float>(tree_sum<float>(ranks.size(), size, 2)));
    EXPECT_TRUE(same_sums(on_host(mine), own(sum), ranks.size(), order)) << size << " elements";
    const std::vector<float> values = padded(values_of<float>(0, size, 3));
    const Vector<float> gathered("test::all", capacity);
    used = whole(gathered);
    used.count = size;
    ranks.all_gather(space, whole(on_device(own(values))), used, "test").wait(space);
    EXPECT_TRUE(same_bytes(on_host(gathered), values)) << size << " elements";
  }
}

TEST_P(CommunicatorContract, BroadcastGivesTheRootsArrayToAll) {
  for (const std::size_t size : sizes) {
    for (const std::size_t root : {std::size_t{0}, ranks.size() - 1}) {
      const Vector<float> data = on_device(values_of<float>(ranks.rank(), size, 5 + root));
      ranks.broadcast(space, whole(data), root, "test").wait(space);
      EXPECT_TRUE(same_bytes(on_host(data), values_of<float>(root, size, 5 + root))) << size << " elements";
    }
  }
}

TEST_P(CommunicatorContract, TransferGivesOneRanksArrayToAnotherAndTouchesNoOther) {
  // Excludes the setup messages of NCCL's first operation.
  ranks.broadcast(space, whole(on_device(std::vector<float>{1.0f})), 0, "test").wait(space);
  for (const std::size_t size : sizes) {
    const std::size_t last = ranks.size() - 1;
    for (const auto& [from, to] : {std::pair{last, std::size_t{0}}, {std::size_t{0}, last}, {last, last}}) {
      const Vector<float> data = on_device(values_of<float>(ranks.rank(), size, 9 + from));
      const std::uint64_t sent_before = sent_bytes();
      ranks.transfer(space, whole(data), from, to, "test").wait(space);
      const bool is_sender = from != to && ranks.rank() == from;
      EXPECT_EQ(sent_bytes() - sent_before, is_sender ? size * sizeof(float) : 0) << size << " elements";
      const std::size_t holds = ranks.rank() == to ? from : ranks.rank();
      EXPECT_TRUE(same_bytes(on_host(data), values_of<float>(holds, size, 9 + from))) << size << " elements";
    }
  }
}

TEST_P(CommunicatorContract, OperationsUnderWayAreCarriedOutInOrder) {
  constexpr std::size_t size = 50000;
  const std::size_t part = size / ranks.size(), count = part * ranks.size();
  const Vector<float> data = on_device(values_of<float>(ranks.rank(), count, 6));
  const Vector<float> mine = slice(data, ranks.rank() * part, (ranks.rank() + 1) * part);
  const Vector<std::int64_t> one = on_device(std::vector<std::int64_t>{1});
  std::vector<Event> events;
  events.push_back(ranks.reduce_scatter(space, whole(data), whole(mine), "sum"));
  events.push_back(ranks.all_gather(space, whole(mine), whole(data), "gather"));
  for (int i = 0; i < 5; ++i) events.push_back(ranks.all_reduce(space, whole(one), "count"));
  events.back().wait(space);
  // Operations are ordered: they may still run on the device, but when the last has ended, all have.
  events.back().wait_for_its_end();
  for (const Event& event : events) EXPECT_TRUE(event.done());
  EXPECT_TRUE(same_sums(on_host(data), tree_sum<float>(ranks.size(), count, 6), ranks.size(), order));
  std::int64_t expected = 1;
  for (int i = 0; i < 5; ++i) expected *= static_cast<std::int64_t>(ranks.size());
  EXPECT_EQ(on_host(one)[0], expected);
}

TEST_P(CommunicatorContract, WaitingAgainLeavesWhatWasWrittenSince) {
  const std::size_t count = 10 * ranks.size();
  const Vector<std::int64_t> all = on_device(values_of<std::int64_t>(ranks.rank(), count, 7));
  const Vector<std::int64_t> mine = slice(all, 10 * ranks.rank(), 10 * ranks.rank() + 10);
  const std::vector<Event> events = {ranks.all_reduce(space, whole(all), "test"),
                                     ranks.broadcast(space, whole(all), 0, "test"),
                                     ranks.reduce_scatter(space, whole(all), whole(mine), "test"),
                                     ranks.all_gather(space, whole(mine), whole(all), "test")};
  for (const Event& event : events) event.wait(space);
  Kokkos::deep_copy(space, all, 5);
  for (const Event& event : events) event.wait(space);
  space.fence();
  EXPECT_THAT(on_host(all), Each(5));
}

TEST_P(CommunicatorContract, WaitingForTheEndLeavesWhatWasWrittenBefore) {
  const Vector<std::int64_t> data = on_device(values_of<std::int64_t>(ranks.rank(), 10, 8));
  const Event first = ranks.all_reduce(space, whole(data), "test");
  first.wait_for_its_end();
  Kokkos::deep_copy(space, data, 1);
  ranks.all_reduce(space, whole(data), "test").wait(space);
  EXPECT_THAT(on_host(data), Each(static_cast<std::int64_t>(ranks.size())));
}

TEST_P(CommunicatorContract, BucketsChangeNoBit) {
  for (const std::size_t bucket : {std::size_t{1}, std::size_t{1} << 30}) {
    SCOPED_TRACE(bucket);
    ranks.set_bucket(bucket);
    check_all_reduce<float>(space, ranks, order);
    check_reduce_scatter<bfloat16, float>(space, ranks, order, Mine::apart);
    check_all_gather<float>(space, ranks, Mine::part_of_all);
  }
  ranks.set_bucket(default_bucket);
}

TEST(Buckets, BoundWhatARankReceives) {
  constexpr std::size_t mebibyte = std::size_t{1} << 20;
  EXPECT_EQ(exchange_bytes(1, mebibyte), 0u);
  for (const std::size_t ranks : {2u, 3u, 17u, 1000u, 16384u}) {
    for (const std::size_t bucket : {mebibyte, default_bucket, 100 * mebibyte}) {
      EXPECT_EQ(exchange_bytes(ranks, bucket), 2 * bucket) << ranks << " ranks";
    }
  }
}

TEST_P(CommunicatorContract, GatherGivesAllPartsToTheRootAlone) {
  for (const std::size_t part : {0u, 3u, 1000u, 40001u}) {
    for (const std::size_t root : {std::size_t{0}, ranks.size() - 1}) {
      const bool is_root = ranks.rank() == root;
      std::vector<float> expected;
      for (std::size_t rank = 0; is_root && rank < ranks.size(); ++rank) {
        const std::vector<float> values = values_of<float>(rank, part, 11);
        expected.insert(expected.end(), values.begin(), values.end());
      }
      const Vector<float> mine = on_device(values_of<float>(ranks.rank(), part, 11));
      const Vector<float> all("test::all", is_root ? part * ranks.size() : 0);
      ranks.gather(space, whole(mine), whole(all), root, "test").wait(space);
      EXPECT_TRUE(same_bytes(on_host(all), expected)) << part << " elements a rank";
    }
  }
}

TEST_P(CommunicatorContract, BarrierReturns) {
  for (int i = 0; i < 20; ++i) ranks.barrier("test");
}

TEST_P(CommunicatorContract, SplitGroupsByColorInTheOrderOfKeys) {
  const std::size_t color = ranks.rank() % 2;
  const std::unique_ptr<Communicator> group = ranks.split(color, ranks.size() - ranks.rank());
  const std::size_t expected_size = (ranks.size() + 1 - color) / 2;
  EXPECT_EQ(group->size(), expected_size);
  EXPECT_EQ(group->rank(), expected_size - 1 - ranks.rank() / 2);
  const std::vector<std::int64_t> members = gather(*group, static_cast<std::int64_t>(ranks.rank()));
  for (std::size_t i = 0; i < members.size(); ++i) {
    EXPECT_EQ(members[i], static_cast<std::int64_t>(color + 2 * (expected_size - 1 - i)));
  }
  check_all_reduce<float>(space, *group, order);
  // Groups alternate, with operations of both in progress.
  const Vector<std::int64_t> count = on_device(std::vector<std::int64_t>{1});
  group->all_reduce(space, whole(count), "within");
  ranks.all_reduce(space, whole(count), "over all").wait(space);
  const auto odd = static_cast<std::int64_t>(ranks.size() / 2), even = static_cast<std::int64_t>(ranks.size()) - odd;
  EXPECT_EQ(on_host(count)[0], odd * odd + even * even);
}

TEST_P(CommunicatorContract, SizesAndTypesThatDoNotFitAreTheCallersFault) {
  const Vector<float> three("test::three", 3 * ranks.size()), two("test::two", 2);
  const Vector<std::int64_t> integers("test::integers", 3);
  EXPECT_THAT(tests::error_of([&] { ranks.all_gather(space, whole(two), whole(three), "units"); }),
              HasSubstr("units: " + std::to_string(3 * ranks.size()) + " elements for"));
  if (ranks.rank() == 0) {
    const Vector<float> one("test::one", 1);
    EXPECT_THAT(tests::error_of([&] { ranks.gather(space, whole(two), whole(one), 0, "units"); }),
                HasSubstr("units: 1 elements for"));
  }
  EXPECT_THAT(tests::error_of([&] { ranks.reduce_scatter(space, whole(three), whole(integers), "units"); }),
              HasSubstr("units: sums have another type"));
  EXPECT_THAT(tests::error_of([&] { ranks.broadcast(space, whole(two), ranks.size(), "units"); }),
              HasSubstr("units: from rank"));
  EXPECT_THAT(tests::error_of([&] { ranks.transfer(space, whole(two), 0, ranks.size(), "units"); }),
              HasSubstr("units: from rank 0 to rank " + std::to_string(ranks.size()) + " of"));
  const Buffer bytes{two.data(), 8, ElementType::byte, MemoryKind::device};
  EXPECT_THAT(tests::error_of([&] { ranks.all_reduce(space, bytes, "units"); }), HasSubstr("bytes have no sum"));
  if (ranks.size() > 1) {
    const Vector<float> not_its_part = slice(three, 1, 4);
    EXPECT_THAT(tests::error_of([&] { ranks.all_gather(space, whole(not_its_part), whole(three), "units"); }),
                HasSubstr("overlaps the array of all"));
  }
  EXPECT_TRUE(Event().done());
}

std::unique_ptr<Communicator> all_ranks() { return tests::launch().world().split(0, tests::launch().world().rank()); }
std::unique_ptr<Communicator> each_alone() { return tests::launch().world().split(tests::launch().world().rank(), 0); }
std::unique_ptr<Communicator> pairs() { return tests::launch().world().split(tests::launch().world().rank() / 2, 0); }

/// Each group is tested on one number of ranks, or where it is not the world.
std::string has_others() { return tests::launch().world().size() > 1 ? "needs one rank, where it is the world" : ""; }
std::string is_no_pair() {
  return tests::launch().world().size() != 2 ? "needs two ranks, each in a group of one" : "";
}
std::string has_no_two_groups() { return tests::launch().world().size() < 3 ? "needs more ranks than a pair" : ""; }

/// Uses NCCL, if the build has it and each rank has its own device.
std::unique_ptr<Communicator> nccl_in_order() { return tests::launch().make_nccl_ranks({.in_order = true}); }
std::unique_ptr<Communicator> nccl() { return tests::launch().make_nccl_ranks({}); }
std::string nccl_cannot_be_here() {
  if (const std::string obstacle = nccl_obstacle(); !obstacle.empty()) return obstacle;
  try {
    check_devices_apart(tests::launch().placements());
  } catch (const std::exception& shared) {
    return shared.what();
  }
  return "";
}

INSTANTIATE_TEST_SUITE_P(All, CommunicatorContract,
                         ::testing::Values(Case{"self", make_self_communicator, Order::tree, has_others},
                                           Case{"world", all_ranks}, Case{"alone", each_alone, Order::tree, is_no_pair},
                                           Case{"pairs", pairs, Order::tree, has_no_two_groups},
                                           Case{"nccl_in_order", nccl_in_order, Order::tree, nccl_cannot_be_here},
                                           Case{"nccl", nccl, Order::library, nccl_cannot_be_here}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace mylos::parallel::contract
