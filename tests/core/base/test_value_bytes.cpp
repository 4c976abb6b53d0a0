#include "core/base/value_bytes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

namespace mylos {
namespace {

/// A struct with padding after its first member.
struct Padded {
  bool flag = false;
  double value = 0.0;
};
auto members(Padded& padded) { return std::tie(padded.flag, padded.value); }

struct Answer {
  std::string text;
  std::vector<std::optional<std::string>> names;
  std::map<int, std::vector<double>> values;
  std::filesystem::path file;

  bool operator==(const Answer&) const = default;
};
auto members(Answer& answer) { return std::tie(answer.text, answer.names, answer.values, answer.file); }

const Answer answer{.text = std::string("a\0b", 3),
                    .names = {std::nullopt, "", "n"},
                    .values = {{-1, {}}, {7, {0.1, 1e300}}},
                    .file = "a directory/file"};

TEST(ValueBytes, AreReadBackAsTheSameValue) {
  EXPECT_EQ(value_of_bytes<Answer>(bytes_of_value(answer)), answer);
  EXPECT_EQ(value_of_bytes<bool>(bytes_of_value(true)), true);
  EXPECT_EQ(value_of_bytes<std::string>(bytes_of_value(std::string())), "");
  const std::vector<std::pair<std::string, double>> pairs{{"a", 0.5}, {"", -0.0}};
  EXPECT_EQ((value_of_bytes<std::vector<std::pair<std::string, double>>>(bytes_of_value(pairs))), pairs);
}

TEST(ValueBytes, AVariantKeepsItsAlternative) {
  using Value = std::variant<std::uint64_t, double, std::string, double>;
  const auto expect_kept = [](const Value& value) {
    const Value copy = value_of_bytes<Value>(bytes_of_value(value));
    EXPECT_EQ(copy.index(), value.index());
    EXPECT_EQ(copy, value);
  };
  // Not in one list of initialisers, which the front end of nvcc 13.0 does not compile.
  expect_kept(Value(std::uint64_t{7}));
  expect_kept(Value(std::in_place_index<1>, 0.5));
  expect_kept(Value("text"));
  expect_kept(Value(std::in_place_index<3>, 0.5));
  EXPECT_THROW(value_of_bytes<Value>(bytes_of_value(std::size_t{4})), std::invalid_argument);
}

TEST(ValueBytes, HoldNoPadding) {
  EXPECT_GT(sizeof(Padded), sizeof(bool) + sizeof(double));
  EXPECT_EQ(bytes_of_value(Padded()).size(), sizeof(bool) + sizeof(double));
  EXPECT_EQ(bytes_of_value(std::optional<std::uint64_t>()).size(), sizeof(bool));
}

TEST(ValueBytes, OfAnotherLengthAreRefused) {
  const std::string bytes = bytes_of_value(answer);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THROW(value_of_bytes<Answer>(bytes.substr(0, size)), std::invalid_argument) << size;
  }
  EXPECT_THROW(value_of_bytes<Answer>(bytes + '\0'), std::invalid_argument);
}

/// Returns `answer` written and read in pieces of `piece` bytes, and adds their sizes to `sizes`.
Answer in_pieces(std::size_t piece, std::vector<std::size_t>& sizes) {
  std::vector<std::string> pieces;
  ByteWriter writer(piece, [&](std::string& bytes) { pieces.push_back(bytes); });
  writer.add(answer);
  writer.finish();
  for (const std::string& each : pieces) sizes.push_back(each.size());
  std::size_t next = 0;
  ByteReader reader([&]() -> std::string_view { return next < pieces.size() ? pieces[next++] : std::string_view(); });
  Answer read;
  reader.read(read);
  EXPECT_TRUE(reader.at_end());
  EXPECT_EQ(next, pieces.size());
  EXPECT_THROW(reader.read(read), std::invalid_argument) << "the pieces have ended";
  return read;
}

TEST(ValueBytes, AreTheSameInPieces) {
  const std::size_t all = bytes_of_value(answer).size();
  for (std::size_t piece = 1; piece <= all + 1; ++piece) {
    std::vector<std::size_t> sizes;
    EXPECT_EQ(in_pieces(piece, sizes), answer) << piece;
    ASSERT_EQ(sizes.size(), (all + piece - 1) / piece);
    EXPECT_TRUE(std::all_of(sizes.begin(), sizes.end() - 1, [&](std::size_t size) { return size == piece; }));
  }
}

struct Arrays {
  std::string text;
  SharedArray<std::uint32_t> small, large;
  std::uint64_t count = 0;
};
auto members(Arrays& arrays) { return std::tie(arrays.text, arrays.small, arrays.large, arrays.count); }

Arrays some_arrays() {
  Arrays arrays{.text = "text", .small = {1, 2, 3}, .large = {}, .count = 9};
  arrays.large.values().assign(least_array_apart / sizeof(std::uint32_t), 5);
  return arrays;
}

void expect_some_arrays(const Arrays& arrays) {
  const Arrays expected = some_arrays();
  EXPECT_EQ(arrays.text, expected.text);
  EXPECT_TRUE(arrays.small == expected.small && arrays.large == expected.large);
  EXPECT_EQ(arrays.count, expected.count);
}

TEST(ValueBytes, HoldSharedArrays) {
  const std::string bytes = bytes_of_value(some_arrays());
  EXPECT_GT(bytes.size(), least_array_apart);
  expect_some_arrays(value_of_bytes<Arrays>(bytes));
  EXPECT_THROW(value_of_bytes<Arrays>(bytes.substr(0, 40)), std::invalid_argument);
}

TEST(ValueBytes, PassOnLargeSharedArraysApart) {
  const Arrays written = some_arrays();
  std::vector<std::string> pieces;
  std::vector<SharedBytes> arrays;
  const auto take_array = [&](std::span<const std::byte> array) {
    const auto copy = std::make_shared<std::vector<std::byte>>(array.begin(), array.end());
    return arrays.emplace_back(SharedBytes{*copy, copy});
  };
  ByteWriter writer(
      1000, [&](std::string& bytes) { pieces.push_back(bytes); }, take_array);
  writer.add(written);
  writer.finish();
  ASSERT_EQ(arrays.size(), 1u) << "the small one is among the bytes";
  EXPECT_EQ(pieces.size(), 2u) << "the bytes before the array and those after it";
  EXPECT_EQ(static_cast<const void*>(written.large.data()), arrays.front().bytes.data()) << "it has moved";
  expect_some_arrays(written);
  std::size_t next = 0;
  ByteReader reader([&]() -> std::string_view { return next < pieces.size() ? pieces[next++] : std::string_view(); },
                    [&](std::size_t bytes) {
                      EXPECT_EQ(next, 1u);
                      EXPECT_EQ(bytes, least_array_apart);
                      return arrays.front();
                    });
  Arrays read;
  reader.read(read);
  EXPECT_TRUE(reader.at_end());
  expect_some_arrays(read);
  EXPECT_EQ(read.large.data(), written.large.data()) << "both use the same memory";
}

TEST(ValueBytes, ReplaceWhatAVectorHeld) {
  std::vector<std::int32_t> numbers{1, 2, 3};
  std::vector<std::string> texts{"a", "b", "c"};
  const std::string bytes =
      bytes_of_value(std::vector<std::int32_t>{4}) + bytes_of_value(std::vector<std::string>{"d"});
  ByteReader reader(bytes);
  reader.read(numbers);
  reader.read(texts);
  EXPECT_EQ(numbers, std::vector<std::int32_t>{4});
  EXPECT_EQ(texts, std::vector<std::string>{"d"});
}

}  // namespace
}  // namespace mylos
