#include "core/arena.hpp"

#include "tests/support/temporary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>

namespace mylos {
namespace {

using ::testing::HasSubstr;
using tests::error_of;

/// Allocates more within a scope than after it.
void take_some(Arena& arena) {
  arena.vector<float>(100);
  {
    const ArenaScope scope(arena);
    arena.matrix<double>(10, 7);
    arena.vector<std::uint16_t>(3);
  }
  arena.vector<std::uint8_t>(1);
}

TEST(Arena, MeasuresWithoutMemory) {
  Arena arena;
  EXPECT_TRUE(arena.measuring());
  const Vector<float> x = arena.vector<float>(5);
  EXPECT_EQ(x.extent(0), 5u);  // size() is 0: Kokkos counts no elements without memory
  EXPECT_EQ(x.data(), nullptr);
  EXPECT_EQ(arena.peak(), 256u);
}

TEST(Arena, APassFitsWhatItMeasuredExactly) {
  Arena measuring;
  take_some(measuring);
  EXPECT_EQ(measuring.peak(), 512u + 768u + 256u);
  Arena arena("test::arena", measuring.peak());
  EXPECT_FALSE(arena.measuring());
  for (int step = 0; step < 3; ++step) {
    const ArenaScope scope(arena);
    EXPECT_NO_THROW(take_some(arena));
  }
  EXPECT_EQ(arena.peak(), measuring.peak());
  EXPECT_EQ(arena.mark(), 0u);
}

TEST(Arena, ArraysDoNotOverlapAndAreAligned) {
  Arena arena("test::arena", 4096);
  const Vector<float> a = arena.vector<float>(3);
  const Matrix<float> b = arena.matrix<float>(2, 5);
  EXPECT_GE(b.data(), a.data() + a.size());
  EXPECT_EQ((reinterpret_cast<std::uintptr_t>(b.data()) - reinterpret_cast<std::uintptr_t>(a.data())) % 256, 0u);
  EXPECT_EQ(b.extent(0), 2u);
  EXPECT_EQ(b.extent(1), 5u);
}

TEST(Arena, RewindsToAMark) {
  Arena arena("test::arena", 1024);
  arena.vector<float>(1);
  const std::size_t mark = arena.mark();
  const Vector<float> first = arena.vector<float>(64);
  arena.rewind(mark);
  EXPECT_EQ(arena.vector<float>(64).data(), first.data());
}

TEST(Arena, RefusesMoreThanWasPlanned) {
  Arena arena("test::arena", 512);
  arena.vector<float>(64);
  EXPECT_THROW(arena.vector<float>(65), std::invalid_argument);
  arena.rewind(256);
  EXPECT_THAT(error_of([&] { arena.vector<float>(65); }),
              HasSubstr("arena test::arena: 768 bytes are needed, 512 were planned"));
}

#if !defined(__SANITIZE_ADDRESS__)  // it ends the program at such a request
TEST(Arena, SaysHowMuchMemoryIsNotToBeHad) {
  const std::size_t bytes = std::size_t{1} << 50;
  EXPECT_THROW(Arena("test::arena", bytes), std::runtime_error);
  EXPECT_THAT(error_of([&] { Arena("test::arena", bytes); }),
              HasSubstr("test::arena: cannot allocate 1048576.00 GiB of memory; use a smaller `micro-batch`"));
}
#endif

}  // namespace
}  // namespace mylos
