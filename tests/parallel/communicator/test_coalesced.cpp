#include "tests/parallel/communicator/communicator_contract.hpp"
#include "tests/support/temporary.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <vector>

/// The part of the contract that is about calls with several arrays.
namespace mylos::parallel::contract {
namespace {

using ::testing::HasSubstr;

/// Expects the sum over ranks of values_of, or this rank's values if `is_summed` is false.
template <class T>
void expect_sum(const Communicator& ranks, Order order, const std::vector<T>& got, std::uint64_t seed, bool is_summed) {
  const std::vector<T> expected = is_summed ? converted<T>(tree_sum<T>(ranks.size(), got.size(), seed))
                                            : values_of<T>(ranks.rank(), got.size(), seed);
  EXPECT_TRUE(same_sums(got, expected, ranks.size(), order)) << "seed " << seed;
}

void wait_and_expect_end(const ExecutionSpace& space, const Event& event) {
  event.wait(space);
  event.wait_for_its_end();
  EXPECT_TRUE(event.done());
}

TEST_P(CommunicatorContract, CoalescedAllReduceSumsEachArray) {
  for (const std::size_t number : {0u, 1u, 3u, 6u}) {
    SCOPED_TRACE(std::to_string(number) + " arrays");
    const Vector<float> floats = on_device(values_of<float>(ranks.rank(), 40001, 12));
    const Vector<double> nothing("test::nothing", 0), doubles = on_device(values_of<double>(ranks.rank(), 1000, 13));
    const Vector<std::int64_t> integers = on_device(values_of<std::int64_t>(ranks.rank(), 3, 14));
    const Vector<bfloat16> rounded = on_device(values_of<bfloat16>(ranks.rank(), 777, 15));
    std::vector<float> host = values_of<float>(ranks.rank(), 5, 16);
    std::vector<NamedArray> arrays = {
        {whole(floats), "floats"},
        {whole(nothing), "nothing"},
        {whole(integers), "integers"},
        {whole(rounded), "rounded"},
        {whole(doubles), "doubles"},
        {{host.data(), host.size(), ElementType::float32, MemoryKind::host}, "on the host"}};
    arrays.resize(number);
    wait_and_expect_end(space, ranks.all_reduce_coalesced(space, arrays));
    expect_sum(ranks, order, on_host(floats), 12, number > 0);
    expect_sum(ranks, order, on_host(integers), 14, number > 2);
    expect_sum(ranks, order, on_host(rounded), 15, number > 3);
    expect_sum(ranks, order, on_host(doubles), 13, number > 4);
    expect_sum(ranks, order, host, 16, number > 5);
  }
}

/// Expects this rank's part of the sum over ranks, or zeros if `is_summed` is false.
template <class T, class S>
void expect_part(const Communicator& ranks, Order order, const Vector<S>& mine, std::uint64_t seed, bool is_summed) {
  const std::size_t part = mine.size(), begin = ranks.rank() * part;
  std::vector<S> expected(part);
  const std::vector<S> sum = converted<S>(tree_sum<T>(ranks.size(), part * ranks.size(), seed));
  if (is_summed) std::copy_n(sum.data() + begin, part, expected.data());
  EXPECT_TRUE(same_sums(on_host(mine), expected, ranks.size(), order)) << "seed " << seed;
}

TEST_P(CommunicatorContract, CoalescedReduceScatterGivesEachRankItsPartOfEachSum) {
  const std::size_t size = ranks.size();
  for (const std::size_t number : {0u, 1u, 3u, 4u}) {
    SCOPED_TRACE(std::to_string(number) + " arrays");
    const Vector<float> floats = on_device(values_of<float>(ranks.rank(), 1000 * size, 22));
    const Vector<float> part = slice(floats, 1000 * ranks.rank(), 1000 * ranks.rank() + 1000);
    const Vector<float> nothing("test::nothing", 0);
    const Vector<bfloat16> rounded = on_device(values_of<bfloat16>(ranks.rank(), 301 * size, 23));
    const Vector<std::int64_t> integers = on_device(values_of<std::int64_t>(ranks.rank(), 50 * size, 24));
    const Vector<float> of_rounded("test::part", 301);
    const Vector<std::int64_t> of_integers("test::part", 50);
    std::vector<NamedParts> arrays = {{whole(part), whole(floats), "floats"},
                                      {whole(nothing), whole(nothing), "nothing"},
                                      {whole(of_rounded), whole(rounded), "rounded"},
                                      {whole(of_integers), whole(integers), "integers"}};
    arrays.resize(number);
    wait_and_expect_end(space, ranks.reduce_scatter_coalesced(space, arrays));
    if (number > 0) expect_part<float>(ranks, order, part, 22, true);
    expect_part<bfloat16>(ranks, order, of_rounded, 23, number > 2);
    expect_part<std::int64_t>(ranks, order, of_integers, 24, number > 3);
  }
}

/// Expects all ranks' values_of one after another, or zeros if `is_gathered` is false.
template <class T>
void expect_all(const Communicator& ranks, const Vector<T>& all, std::uint64_t seed, bool is_gathered) {
  std::vector<T> expected;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const std::vector<T> values = values_of<T>(rank, all.size() / ranks.size(), seed);
    expected.insert(expected.end(), values.begin(), values.end());
  }
  EXPECT_TRUE(same_bytes(on_host(all), is_gathered ? expected : std::vector<T>(all.size()))) << "seed " << seed;
}

TEST_P(CommunicatorContract, CoalescedAllGatherGivesAllPartsOfEachArrayToAll) {
  const std::size_t size = ranks.size();
  for (const std::size_t number : {0u, 1u, 3u, 4u}) {
    SCOPED_TRACE(std::to_string(number) + " arrays");
    const Vector<float> floats("test::all", 1000 * size), nothing("test::nothing", 0);
    const Vector<std::int64_t> integers("test::all", 3 * size);
    const Vector<bfloat16> rounded("test::all", 777 * size);
    const Vector<float> part = slice(floats, 1000 * ranks.rank(), 1000 * ranks.rank() + 1000);
    if (number > 0) Kokkos::deep_copy(part, on_device(values_of<float>(ranks.rank(), 1000, 32)));
    const Vector<std::int64_t> of_integers = on_device(values_of<std::int64_t>(ranks.rank(), 3, 33));
    const Vector<bfloat16> of_rounded = on_device(values_of<bfloat16>(ranks.rank(), 777, 34));
    std::vector<NamedParts> arrays = {{whole(part), whole(floats), "floats"},
                                      {whole(nothing), whole(nothing), "nothing"},
                                      {whole(of_integers), whole(integers), "integers"},
                                      {whole(of_rounded), whole(rounded), "rounded"}};
    arrays.resize(number);
    wait_and_expect_end(space, ranks.all_gather_coalesced(space, arrays));
    expect_all(ranks, floats, 32, number > 0);
    expect_all(ranks, integers, 33, number > 2);
    expect_all(ranks, rounded, 34, number > 3);
  }
}

TEST_P(CommunicatorContract, CoalescedCallsKeepTheOrderOfOperations) {
  const Vector<std::int64_t> first = on_device(std::vector<std::int64_t>{1}),
                             second = on_device(std::vector<std::int64_t>{1});
  const std::vector<NamedArray> both = {{whole(first), "first"}, {whole(second), "second"}};
  const std::vector<Event> events = {ranks.all_reduce(space, whole(first), "test"),
                                     ranks.all_reduce_coalesced(space, both), ranks.all_reduce_coalesced(space, both),
                                     ranks.all_reduce(space, whole(second), "test")};
  events.back().wait(space);
  const auto size = static_cast<std::int64_t>(ranks.size());
  EXPECT_EQ(on_host(first)[0], size * size * size);
  EXPECT_EQ(on_host(second)[0], size * size * size);
  for (const Event& event : events) event.wait(space);
  Kokkos::deep_copy(space, first, 5);
  for (const Event& event : events) event.wait(space);
  space.fence();
  EXPECT_EQ(on_host(first)[0], 5) << "waiting again leaves what was written since";
}

TEST_P(CommunicatorContract, CoalescedCallsCheckEveryArray) {
  const Vector<float> three("test::three", 3 * ranks.size()), two("test::two", 2);
  const Vector<std::int64_t> integers("test::integers", 3);
  const Buffer bytes{two.data(), 8, ElementType::byte, MemoryKind::device};
  const std::vector<NamedArray> sums = {{whole(three), "three"}, {bytes, "units"}};
  EXPECT_THAT(tests::error_of([&] { ranks.all_reduce_coalesced(space, sums); }), HasSubstr("units: bytes have no sum"));
  const std::vector<NamedParts> parts = {{whole(integers), whole(three), "units"}};
  EXPECT_THAT(tests::error_of([&] { ranks.reduce_scatter_coalesced(space, parts); }), HasSubstr("units: sums have"));
  EXPECT_THAT(tests::error_of([&] { ranks.all_gather_coalesced(space, parts); }), HasSubstr("units: a part has"));
  EXPECT_TRUE(Event::all_of({}).done());
}

}  // namespace
}  // namespace mylos::parallel::contract
