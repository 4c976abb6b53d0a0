#include "data/huggingface/channels_last.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <stdexcept>
#include <vector>

namespace mylos::data {
namespace {

constexpr ConvolutionSizes sizes{.out = 3, .in = 2, .height = 2, .width = 3};

/// Returns weights in file order. Element (o, i, y, x) has its own index as its value.
std::vector<float> in_file() {
  std::vector<float> values(sizes.out * sizes.channel());
  std::iota(values.begin(), values.end(), 0.0f);
  return values;
}

/// Returns the same weights in memory order, computed index by index.
std::vector<float> in_memory() {
  const std::vector<float> file = in_file();
  std::vector<float> values;
  for (std::size_t o = 0; o < sizes.out; ++o) {
    for (std::size_t y = 0; y < sizes.height; ++y) {
      for (std::size_t x = 0; x < sizes.width; ++x) {
        for (std::size_t i = 0; i < sizes.in; ++i) {
          values.push_back(file[((o * sizes.in + i) * sizes.height + y) * sizes.width + x]);
        }
      }
    }
  }
  return values;
}

TEST(ChannelsLast, EveryRangeIsReadAsThePartOfTheWhole) {
  const std::vector<float> file = in_file(), expected = in_memory();
  const TensorReader read = read_channels_last(
      [&](std::size_t first, std::span<float> values) {
        ASSERT_EQ(first % sizes.channel(), 0u) << "whole channels are read";
        std::copy_n(file.begin() + static_cast<std::ptrdiff_t>(first), values.size(), values.begin());
      },
      sizes);
  for (std::size_t begin = 0; begin <= expected.size(); ++begin) {
    for (std::size_t end = begin; end <= expected.size(); ++end) {
      std::vector<float> values(end - begin);
      read(begin, values);
      EXPECT_EQ(values, std::vector(expected.begin() + static_cast<std::ptrdiff_t>(begin),
                                    expected.begin() + static_cast<std::ptrdiff_t>(end)));
    }
  }
}

TEST(ChannelsLast, PiecesAreTurnedBack) {
  for (const std::size_t piece : {1u, 5u, 12u, 17u, 36u}) {
    ChannelsFirst turner(sizes);
    const std::vector<float> values = in_memory();
    std::vector<float> turned;
    for (std::size_t begin = 0; begin < values.size(); begin += piece) {
      turner.write(std::span(values).subspan(begin, std::min(piece, values.size() - begin)),
                   [&](std::span<const float> part) { turned.insert(turned.end(), part.begin(), part.end()); });
    }
    EXPECT_EQ(turned, in_file()) << "in pieces of " << piece;
  }
}

TEST(ChannelsLast, SizesAreThoseOfTheShapeInMemory) {
  const ConvolutionSizes read = channels_last_sizes(std::vector<std::size_t>{64, 7, 5, 3});
  EXPECT_EQ(read.out, 64u);
  EXPECT_EQ(read.height, 7u);
  EXPECT_EQ(read.width, 5u);
  EXPECT_EQ(read.in, 3u);
  EXPECT_THROW(channels_last_sizes(std::vector<std::size_t>{64, 7}), std::invalid_argument);
}

}  // namespace
}  // namespace mylos::data
