#include "parallel/communicator/device_rank_sum.hpp"

#include "core/random.hpp"
#include "parallel/communicator/rank_sum.hpp"
#include "tests/support/temporary.hpp"

#include <gmock/gmock.h>

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

/// Against the sum on the host, which test_rank_sum.cpp holds to its order.
namespace mylos::parallel {
namespace {

/// Of many magnitudes, so that another order gives other bits.
template <class T>
std::vector<T> values_of(std::size_t rank, std::size_t count) {
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const RandomWords words = philox(11, i, rank);
    const auto word = static_cast<std::int32_t>(words.word[0]);
    if constexpr (std::is_same_v<T, std::int64_t>) {
      values[i] = static_cast<std::int64_t>(word) << words.word[1] % 32;  // sums beyond 2^63 come around
    } else {
      values[i] = static_cast<T>(static_cast<float>(word) / static_cast<float>(1u << words.word[1] % 16));
    }
  }
  return values;
}

template <class T>
Vector<T> on_device(const std::vector<T>& values) {
  const Vector<T> device("test::values", values.size());
  const auto host = Kokkos::create_mirror_view(device);
  std::copy(values.begin(), values.end(), host.data());
  Kokkos::deep_copy(device, host);
  return device;
}

enum class Sums { apart, over_own };

/// The sum as each of `ranks` ranks takes it, whose part is `own`.
template <class T, class Result>
void check(std::size_t ranks, std::size_t count, ElementType type, ElementType sum_type, Sums where) {
  constexpr std::size_t gap = 3;  // what is received may lie apart
  std::vector<std::vector<T>> arrays;
  std::vector<const void*> parts;
  for (std::size_t rank = 0; rank < ranks; ++rank) arrays.push_back(values_of<T>(rank, count));
  for (const std::vector<T>& array : arrays) parts.push_back(array.data());
  std::vector<Result> expected(count);
  sum_over_ranks(type, parts, count, sum_type, expected.data());
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    std::vector<T> others((ranks - 1) * (count + gap));
    for (std::size_t other = 0, place = 0; other < ranks; ++other) {
      if (other == rank) continue;
      std::copy(arrays[other].begin(), arrays[other].end(), others.begin() + static_cast<std::ptrdiff_t>(place));
      place += count + gap;
    }
    const Vector<T> own = on_device(arrays[rank]), received = on_device(others);
    const Vector<Result> apart("test::sums", count);
    void* const sums = where == Sums::apart ? static_cast<void*>(apart.data()) : static_cast<void*>(own.data());
    const ExecutionSpace space;
    sum_over_ranks(space, type, {own.data(), received.data(), count + gap, rank, ranks}, count, sum_type, sums);
    const auto got =
        Kokkos::create_mirror_view_and_copy(HostSpace(), Vector<Result>(static_cast<Result*>(sums), count));
    EXPECT_TRUE(count == 0 || std::memcmp(got.data(), expected.data(), count * sizeof(Result)) == 0)
        << "rank " << rank << " of " << ranks << ", " << count << " elements";
  }
}

TEST(DeviceRankSum, HasTheBitsOfTheSumOnTheHost) {
  for (std::size_t ranks = 1; ranks <= 9; ++ranks) {
    for (const std::size_t count : {0, 1, 3, 1023, 1025, 2049}) {
      check<float, float>(ranks, count, ElementType::float32, ElementType::float32, Sums::apart);
      check<float, float>(ranks, count, ElementType::float32, ElementType::float32, Sums::over_own);
      check<double, double>(ranks, count, ElementType::float64, ElementType::float64, Sums::over_own);
      check<std::int64_t, std::int64_t>(ranks, count, ElementType::int64, ElementType::int64, Sums::over_own);
      check<bfloat16, bfloat16>(ranks, count, ElementType::bfloat16, ElementType::bfloat16, Sums::over_own);
      check<bfloat16, float>(ranks, count, ElementType::bfloat16, ElementType::float32, Sums::apart);
    }
  }
  check<float, float>(64, 5, ElementType::float32, ElementType::float32, Sums::apart);
  check<float, float>(100, 5, ElementType::float32, ElementType::float32, Sums::apart);
}

TEST(DeviceRankSum, WhatIsReceivedForItIsBounded) {
  EXPECT_EQ(device_exchange_bytes(1), 0u);
  for (std::size_t ranks = 2; ranks <= 1025; ++ranks) {
    EXPECT_LE(device_exchange_bytes(ranks), std::size_t{64} << 20);
    EXPECT_EQ(device_exchange_bytes(ranks), (ranks - 1) * device_piece_bytes(ranks));
    EXPECT_EQ(device_piece_bytes(ranks) % 4096, 0u);
  }
  EXPECT_EQ(device_exchange_bytes(1025 + 64), std::size_t{68} << 20);
}

TEST(DeviceRankSum, BytesHaveNone) {
  const Vector<std::byte> byte("test::byte", 1);
  const RankParts parts{byte.data(), nullptr, 0, 0, 1};
  EXPECT_THAT(tests::error_of([&] {
                sum_over_ranks(ExecutionSpace(), ElementType::byte, parts, 1, ElementType::byte, byte.data());
              }),
              ::testing::HasSubstr("bytes have no sum"));
}

}  // namespace
}  // namespace mylos::parallel
