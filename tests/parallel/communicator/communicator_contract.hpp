#pragma once

#include "parallel/communicator/communicator.hpp"
#include "tests/support/arrays.hpp"
#include "tests/support/rank_values.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <ostream>
#include <string>
#include <type_traits>
#include <vector>

/// One contract for all communicators: a group of one, all ranks, and groups created by split. test_communicator.cpp
/// lists them.
namespace mylos::parallel::contract {

template <class T>
struct Element;
template <>
struct Element<float> {
  using Sum = float;
  static constexpr ElementType type = ElementType::float32;
};
template <>
struct Element<double> {
  using Sum = double;
  static constexpr ElementType type = ElementType::float64;
};
template <>
struct Element<bfloat16> {
  using Sum = float;
  static constexpr ElementType type = ElementType::bfloat16;
};
template <>
struct Element<std::int64_t> {
  using Sum = std::int64_t;
  static constexpr ElementType type = ElementType::int64;
};

/// Returns an array of `rank`. Ranks and seeds differ in their values, with both signs and many magnitudes, so that
/// another order of summation changes bits.
template <class T>
std::vector<T> values_of(std::size_t rank, std::size_t count, std::uint64_t seed) {
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const RandomWords words = tests::mixed_words(seed, i, rank);
    // At most 24 significant bits and exact steps, so that the reference is independent of the compiler.
    const float value = static_cast<float>(static_cast<std::int32_t>(words.word[0]) >> 8) /
                        static_cast<float>(1u << words.word[1] % 16);
    if constexpr (std::is_same_v<T, std::int64_t>) {
      values[i] = static_cast<std::int64_t>(words.word[0]) * (words.word[1] % 2 == 0 ? 1 : -1);
    } else {
      values[i] = static_cast<T>(value);
    }
  }
  return values;
}

/// Returns the sum over ranks as Communicator specifies it: pairs of neighbours, recursively; an odd one is passed up
/// unchanged.
template <class T>
std::vector<typename Element<T>::Sum> tree_sum(std::size_t ranks, std::size_t count, std::uint64_t seed) {
  using Sum = typename Element<T>::Sum;
  std::vector<std::vector<Sum>> level;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const std::vector<T> values = values_of<T>(rank, count, seed);
    level.emplace_back(values.begin(), values.end());
  }
  while (level.size() > 1) {
    std::vector<std::vector<Sum>> above;
    for (std::size_t i = 0; i < level.size(); i += 2) {
      above.push_back(level[i]);
      if (i + 1 == level.size()) continue;
      for (std::size_t j = 0; j < count; ++j) above.back()[j] += level[i + 1][j];
    }
    level = above;
  }
  return level.front();
}

template <class T>
Vector<T> on_device(const std::vector<T>& values) {
  Vector<T> device("test::buffer", values.size());
  const auto host = Kokkos::create_mirror_view(device);
  std::copy(values.begin(), values.end(), host.data());
  Kokkos::deep_copy(device, host);
  return device;
}

template <class T>
std::vector<T> on_host(const Vector<T>& device) {
  const auto host = Kokkos::create_mirror_view_and_copy(HostSpace(), device);
  return {host.data(), host.data() + host.size()};
}

template <class T>
Buffer whole(const Vector<T>& vector) {
  return {vector.data(), vector.size(), Element<T>::type, MemoryKind::device};
}

template <class T>
bool same_bytes(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

/// The order of float32 and float64 sums in a communicator: that of Communicator, or the library's own.
enum class Order { tree, library };

/// Compares sums over `ranks` of values below 2^23: the same bits, or within the rounding of each addition.
template <class T>
bool same_sums(const std::vector<T>& got, const std::vector<T>& expected, std::size_t ranks, Order order) {
  if constexpr (std::is_floating_point_v<T>) {
    if (order == Order::library) {
      const T tolerance = std::numeric_limits<T>::epsilon() * T(0x1p23) * static_cast<T>(ranks * ranks);
      return std::ranges::equal(got, expected, [&](T a, T b) { return std::abs(a - b) <= tolerance; });
    }
  }
  return same_bytes(got, expected);
}

template <class To, class From>
std::vector<To> converted(const std::vector<From>& values) {
  std::vector<To> result;
  for (const From& value : values) result.push_back(static_cast<To>(value));
  return result;
}

struct Case {
  const char* name;
  std::function<std::unique_ptr<Communicator>()> make;
  Order order = Order::tree;
  std::function<std::string()> obstacle = {};  ///< reason why it cannot be created here; the same on every rank
};

inline void PrintTo(const Case& each, std::ostream* out) { *out << each.name; }

class CommunicatorContract : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (!obstacle.empty()) GTEST_SKIP() << obstacle;
  }

  const std::string obstacle = GetParam().obstacle ? GetParam().obstacle() : "";
  std::unique_ptr<Communicator> communicator = obstacle.empty() ? GetParam().make() : make_self_communicator();
  Communicator& ranks = *communicator;
  const Order order = GetParam().order;
  ExecutionSpace space;
};

}  // namespace mylos::parallel::contract
