#include "parallel/communicator/value_broadcast.hpp"

#include "tests/support/launch.hpp"
#include "tests/support/temporary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace mylos::parallel {
namespace {

Communicator& ranks_here() { return tests::launch().world(); }
bool is_first() { return ranks_here().rank() == 0; }

struct Texts {
  std::vector<std::string> texts;
  std::vector<std::int32_t> ids;
  std::uint64_t count = 0;

  bool operator==(const Texts&) const = default;
};
auto members(Texts& texts) { return std::tie(texts.texts, texts.ids, texts.count); }

Texts texts_of(std::size_t ids) {
  Texts texts{.texts = {"", "one", std::string("a\0b", 3)}, .ids = {}, .count = 7};
  texts.ids.resize(ids);
  std::iota(texts.ids.begin(), texts.ids.end(), -3);
  return texts;
}

/// Returns what every rank has after a broadcast of the first rank's `texts`.
Texts received_from_first(const Texts& texts, std::size_t piece) {
  Texts received = is_first() ? texts : Texts();
  broadcast_values(
      ranks_here(), [&](ByteWriter& bytes) { bytes.add(texts); }, [&](ByteReader& bytes) { bytes.read(received); },
      piece);
  return received;
}

TEST(ValueBroadcast, EveryRankHasTheValuesWhateverThePieces) {
  const Texts texts = texts_of(100);
  const std::size_t all = bytes_of_value(texts).size();
  for (const std::size_t piece : {std::size_t{1}, std::size_t{5}, all / 2, all - 1, all, all + 1, broadcast_piece}) {
    EXPECT_EQ(received_from_first(texts, piece), texts) << piece;
  }
  EXPECT_EQ(received_from_first(Texts(), 3), Texts());
}

TEST(ValueBroadcast, LongArraysGoInPieces) {
  const Texts texts = texts_of(1'500'000);
  EXPECT_TRUE(received_from_first(texts, std::size_t{1} << 20) == texts);
}

struct Arrays {
  std::string text;
  SharedArray<std::uint32_t> first, small;
  std::uint64_t count = 0;
  SharedArray<std::uint32_t> last;

  bool operator==(const Arrays&) const = default;
};
auto members(Arrays& arrays) { return std::tie(arrays.text, arrays.first, arrays.small, arrays.count, arrays.last); }

Arrays some_arrays() {
  Arrays arrays{.text = "text", .first = {}, .small = {1, 2}, .count = 9, .last = {}};
  arrays.first.values().resize(50'000, 3);
  arrays.last.values().resize(least_array_apart / sizeof(std::uint32_t), 4);
  std::iota(arrays.first.values().begin(), arrays.first.values().end(), 5u);
  return arrays;
}

TEST(ValueBroadcast, LargeArraysAreInMemoryThatCannotBeChanged) {
  for (const std::size_t piece : {std::size_t{30'000}, least_array_apart, broadcast_piece}) {
    Arrays arrays = is_first() ? some_arrays() : Arrays();
    const std::string remark = broadcast_values(
        ranks_here(), [&](ByteWriter& bytes) { bytes.add(arrays); }, [&](ByteReader& bytes) { bytes.read(arrays); },
        piece);
    EXPECT_EQ(remark, "");
    EXPECT_TRUE(arrays == some_arrays()) << piece;
    arrays.small.values().push_back(7);
    if (ranks_here().size() == 1) continue;
    EXPECT_THROW(arrays.first.values(), std::invalid_argument) << "also on the first rank";
    EXPECT_THROW(arrays.last.values(), std::invalid_argument);
  }
}

TEST(ValueBroadcast, ArraysThatAreLeftAreAnErrorAndLeaveTheRanksInStep) {
  const auto write = [&](ByteWriter& bytes) { bytes.add(some_arrays()); };
  const auto read_one = [&](ByteReader& bytes) {
    Arrays arrays;
    bytes.read(arrays.text);
    bytes.read(arrays.first);
    EXPECT_TRUE(arrays.first == some_arrays().first);
  };
  const std::string left = tests::error_of([&] { broadcast_values(ranks_here(), write, read_one); });
  const auto read_none = [](ByteReader&) {};
  const std::string unread = tests::error_of([&] { broadcast_values(ranks_here(), write, read_none); });
  EXPECT_EQ(received_from_first(texts_of(3), 100), texts_of(3));
  if (is_first()) return;
  EXPECT_THAT(left, ::testing::HasSubstr("values of the first rank are left"));
  EXPECT_THAT(unread, ::testing::HasSubstr("values of the first rank are left"));
}

TEST(ValueBroadcast, TheFirstRankWritesOnceAndTheOthersReadOnce) {
  int written = 0, read = 0;
  const auto write = [&](ByteWriter&) { ++written; };
  const auto take = [&](ByteReader&) { ++read; };
  broadcast_values(ranks_here(), write, take);
  EXPECT_EQ(written, is_first() && ranks_here().size() > 1 ? 1 : 0);
  EXPECT_EQ(read, is_first() ? 0 : 1);
}

/// Returns the error of a rank that reads `read` numbers of the `written` ones of the first rank.
std::string error_of_reading(std::size_t read, std::size_t written, std::size_t piece) {
  const auto write = [&](ByteWriter& bytes) {
    for (std::uint64_t i = 0; i < written; ++i) bytes.add(i);
  };
  const auto take = [&](ByteReader& bytes) {
    for (std::uint64_t i = 0, number = 0; i < read; ++i) bytes.read(number);
  };
  return tests::error_of([&] { broadcast_values(ranks_here(), write, take, piece); });
}

TEST(ValueBroadcast, OtherNumbersOfValuesAreAnErrorAndLeaveTheRanksInStep) {
  for (const std::size_t piece : {std::size_t{8}, std::size_t{10}, broadcast_piece}) {
    const std::string left = error_of_reading(1, 3, piece), missing = error_of_reading(3, 2, piece);
    EXPECT_EQ(received_from_first(texts_of(3), piece), texts_of(3)) << piece;
    if (is_first()) continue;
    EXPECT_THAT(left, ::testing::HasSubstr("values of the first rank are left")) << piece;
    EXPECT_THAT(missing, ::testing::HasSubstr("truncated value")) << piece;
  }
}

}  // namespace
}  // namespace mylos::parallel
