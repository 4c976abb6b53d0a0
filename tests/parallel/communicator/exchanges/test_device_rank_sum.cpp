#include "parallel/communicator/exchanges/device_rank_sum.hpp"

#include "parallel/communicator/exchanges/rank_sum.hpp"
#include "tests/support/rank_values.hpp"
#include "tests/support/temporary.hpp"

#include <gmock/gmock.h>

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

/// Compares with the sum on the host, whose order test_rank_sum.cpp checks.
namespace mylos::parallel {
namespace {

/// Values of many magnitudes, so that another order changes bits.
template <class T>
std::vector<T> values_of(std::size_t rank, std::size_t count) {
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const RandomWords words = tests::mixed_words(11, i, rank);
    const auto word = static_cast<std::int32_t>(words.word[0]);
    if constexpr (std::is_same_v<T, std::int64_t>) {
      values[i] = static_cast<std::int64_t>(word) << words.word[1] % 32;  // sums beyond 2^63 wrap around
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

enum class Sums { apart, over_one };

/// Returns the sum of `ranks` arrays, which may overwrite any of them.
template <class T, class Result>
void check(std::size_t ranks, std::size_t count, ElementType type, ElementType sum_type, Sums where) {
  std::vector<std::vector<T>> arrays;
  std::vector<const void*> parts;
  for (std::size_t rank = 0; rank < ranks; ++rank) arrays.push_back(values_of<T>(rank, count));
  for (const std::vector<T>& array : arrays) parts.push_back(array.data());
  std::vector<Result> expected(count);
  sum_over_ranks(type, parts, count, sum_type, expected.data());
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    std::vector<Vector<T>> copies;
    DeviceParts in_order;
    for (const std::vector<T>& array : arrays) {
      in_order.part[in_order.count++] = copies.emplace_back(on_device(array)).data();
    }
    const Vector<Result> apart("test::sums", count);
    void* const sums =
        where == Sums::apart ? static_cast<void*>(apart.data()) : static_cast<void*>(copies[rank].data());
    const ExecutionSpace space;
    sum_over_ranks(space, type, in_order, count, sum_type, sums);
    const auto got =
        Kokkos::create_mirror_view_and_copy(HostSpace(), Vector<Result>(static_cast<Result*>(sums), count));
    EXPECT_TRUE(count == 0 || std::memcmp(got.data(), expected.data(), count * sizeof(Result)) == 0)
        << "over rank " << rank << " of " << ranks << ", " << count << " elements";
  }
}

TEST(DeviceRankSum, HasTheBitsOfTheSumOnTheHost) {
  for (std::size_t ranks = 1; ranks <= most_parts; ++ranks) {
    for (const std::size_t count : {0, 1, 3, 1023, 1025, 2049}) {
      check<float, float>(ranks, count, ElementType::float32, ElementType::float32, Sums::apart);
      check<float, float>(ranks, count, ElementType::float32, ElementType::float32, Sums::over_one);
      check<float, bfloat16>(ranks, count, ElementType::float32, ElementType::bfloat16, Sums::apart);
      check<double, double>(ranks, count, ElementType::float64, ElementType::float64, Sums::over_one);
      check<std::int64_t, std::int64_t>(ranks, count, ElementType::int64, ElementType::int64, Sums::over_one);
      check<bfloat16, bfloat16>(ranks, count, ElementType::bfloat16, ElementType::bfloat16, Sums::over_one);
      check<bfloat16, float>(ranks, count, ElementType::bfloat16, ElementType::float32, Sums::apart);
    }
  }
}

TEST(DeviceRankSum, WhatIsReceivedForItIsBounded) {
  EXPECT_EQ(device_exchange_bytes(1), 0u);
  for (const std::size_t ranks : {2u, 64u, 1024u, 16384u}) {
    EXPECT_EQ(device_exchange_bytes(ranks), std::size_t{64} << 20);
    EXPECT_EQ(device_exchange_bytes(ranks, default_bucket / 2), std::size_t{32} << 20);
  }
}

TEST(DeviceRankSum, BytesHaveNone) {
  const Vector<std::byte> byte("test::byte", 1);
  const DeviceParts parts{{byte.data()}, 1};
  EXPECT_THAT(tests::error_of([&] {
                sum_over_ranks(ExecutionSpace(), ElementType::byte, parts, 1, ElementType::byte, byte.data());
              }),
              ::testing::HasSubstr("bytes have no sum"));
}

}  // namespace
}  // namespace mylos::parallel
