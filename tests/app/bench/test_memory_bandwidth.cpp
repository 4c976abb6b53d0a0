#include "app/bench/memory_bandwidth.hpp"

#include <gtest/gtest.h>

namespace mylos::app {
namespace {

TEST(MemoryBandwidth, IsMeasuredAsOftenAsAsked) {
  MemoryBandwidth bandwidth;
  for (int i = 0; i < 2; ++i) EXPECT_GT(bandwidth.measure(), 0.0);
}

}  // namespace
}  // namespace mylos::app
