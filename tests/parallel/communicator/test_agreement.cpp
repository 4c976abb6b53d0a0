#include "parallel/communicator/agreement.hpp"

#include "tests/support/launch.hpp"
#include "tests/support/shared_directory.hpp"
#include "tests/support/temporary.hpp"
#include "tests/support/waiting.hpp"

#include <gtest/gtest.h>

#include <malloc.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
#define MYLOS_HEAP_IS_COUNTED
#endif

namespace mylos::parallel {
namespace {

/// Returns the bytes of the heap that are in use; 0 if the C library does not count them.
std::size_t heap_bytes() {
#ifdef MYLOS_HEAP_IS_COUNTED
  const auto info = ::mallinfo2();
  return info.uordblks + info.hblkhd;
#else
  return 0;
#endif
}

Communicator& world() { return tests::launch().world(); }
std::int64_t ranks() { return static_cast<std::int64_t>(world().size()); }
std::int64_t rank() { return static_cast<std::int64_t>(world().rank()); }

TEST(Agreement, NumbersAreSummedComparedAndGathered) {
  EXPECT_EQ(sum(world(), 1.5), 1.5 * static_cast<double>(ranks()));
  EXPECT_EQ(maximum(world(), -rank()), 0);
  EXPECT_EQ(maximum(world(), rank() - 10), ranks() - 11);
  EXPECT_EQ(minimum(world(), rank() - 10), -10);
  EXPECT_EQ(minimum(world(), -rank()), 1 - ranks());
  std::vector<double> values{1.0, static_cast<double>(rank())};
  sum_in_place(world(), values);
  EXPECT_EQ(values[0], static_cast<double>(ranks()));
  EXPECT_EQ(values[1], static_cast<double>(ranks() * (ranks() - 1) / 2));
  const std::vector<std::int64_t> all = gather(world(), 7 * rank());
  ASSERT_EQ(all.size(), world().size());
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], static_cast<std::int64_t>(7 * i));
  const std::vector<double> two = gather(world(), std::vector<double>{0.5, static_cast<double>(rank())});
  ASSERT_EQ(two.size(), 2 * world().size());
  EXPECT_EQ(two.back(), static_cast<double>(ranks() - 1));
}

/// The other ranks join the later operation when the first rank has the maximum.
TEST(Agreement, APendingMaximumDoesNotWaitForLaterOperations) {
  const tests::SharedDirectory directory;
  const std::filesystem::path known = directory / "known";
  const ExecutionSpace space;
  const PendingMaximum pending(world(), std::array{rank(), -rank()});
  double value = 1.0;
  const auto submit = [&] {
    return world().all_reduce(space, {&value, 1, ElementType::float64, MemoryKind::host}, "");
  };
  Event later;
  if (rank() == 0) later = submit();
  EXPECT_EQ(pending.wait(), (std::vector{ranks() - 1, std::int64_t{0}}));
  if (rank() == 0) {
    tests::write_file(known, "");
  } else {
    EXPECT_TRUE(tests::wait_until([&] { return std::filesystem::exists(known); }))
        << "the first rank waits for the later operation";
    later = submit();
  }
  later.wait(space);
  EXPECT_EQ(value, static_cast<double>(ranks()));
}

/// An exception may come before the maximum is waited for. The last rank joins late.
TEST(Agreement, APendingMaximumKeepsItsMemoryUntilTheExchangeEnds) {
  if (world().size() == 1) GTEST_SKIP() << "needs two ranks";
  const tests::SharedDirectory directory;
  const std::filesystem::path ended = directory / "ended";
  if (rank() == ranks() - 1) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    EXPECT_FALSE(std::filesystem::exists(ended)) << "the first rank has left its exchange behind";
  }
  { const PendingMaximum unread(world(), std::array{rank()}); }
  if (rank() == 0) tests::write_file(ended, "");
}

TEST(Agreement, TextsOfOtherLengthsComeWhole) {
  const auto text = [](std::size_t rank) { return std::string(1000 * rank, static_cast<char>('a' + rank)); };
  const std::vector<std::string> all = gather(world(), text(world().rank()));
  ASSERT_EQ(all.size(), world().size());
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], text(i));
  EXPECT_EQ(broadcast(world(), rank() == 0 ? "of the first" : "of another, and longer"), "of the first");
  EXPECT_EQ(broadcast(world(), ""), "");
}

TEST(Agreement, TextsComeToTheFirstRankInPieces) {
  constexpr std::size_t most = 100;
  const auto text = [](std::size_t rank) {
    constexpr std::array<std::size_t, 4> sizes{250, 0, 100, 301};
    return std::string(sizes[rank % sizes.size()], static_cast<char>('a' + rank % 26));
  };
  std::string expected, actual;
  for (std::size_t i = 0; i < world().size(); ++i) expected += text(i);
  const auto take = [&](std::string_view piece) {
    EXPECT_LE(piece.size(), most);
    actual += piece;
  };
  gather_in_pieces(world(), text(world().rank()), take, most);
  EXPECT_EQ(actual, rank() == 0 ? expected : "");
  gather_in_pieces(world(), "", take);
  EXPECT_EQ(actual, rank() == 0 ? expected : "");
}

TEST(Agreement, APieceThatCannotBeTakenIsAnErrorOfAll) {
  int calls = 0;
  const auto second_fails = [&](std::string_view) {
    if (++calls == 2) throw std::runtime_error("the disk is full");
  };
  const auto gather_two = [&] { gather_in_pieces(world(), "two pieces", second_fails, 5); };
  EXPECT_EQ(tests::error_of(gather_two), "the disk is full");
  EXPECT_EQ(calls, rank() == 0 ? 2 : 0);
  EXPECT_EQ(sum(world(), 1.0), static_cast<double>(ranks())) << "a piece is left";
}

TEST(Agreement, TheFirstRankHoldsOnePieceAtATime) {
#ifndef MYLOS_HEAP_IS_COUNTED
  GTEST_SKIP() << "the C library does not count the heap";
#endif
  constexpr std::size_t most = std::size_t{64} << 10, slack = std::size_t{1} << 20;
  const std::string text(std::size_t{4} << 20, 'a');
  gather_in_pieces(
      world(), text, [](std::string_view) {}, most);  // MPI allocates its buffers
  const std::size_t before = heap_bytes();
  std::size_t largest = before, taken = 0;
  gather_in_pieces(
      world(), text,
      [&](std::string_view piece) {
        taken += piece.size();
        largest = std::max(largest, heap_bytes());
      },
      most);
  EXPECT_EQ(taken, rank() == 0 ? text.size() * world().size() : 0u);
  EXPECT_LE(largest - before, slack);
}

TEST(Agreement, WorkOfTheFirstRankIsKnownToAll) {
  int calls = 0;
  const auto work = [&] { return ++calls, std::string("done"); };
  EXPECT_EQ(on_first_rank(world(), work), "done");
  EXPECT_EQ(calls, rank() == 0 ? 1 : 0);
  const auto failing = []() -> std::string { throw std::runtime_error("the disk is full"); };
  EXPECT_EQ(tests::error_of([&] { on_first_rank(world(), failing); }), "the disk is full");
  EXPECT_THROW(on_first_rank(world(), []() -> std::string { throw std::logic_error(""); }), std::runtime_error);
}

TEST(Agreement, ResultsOfTheFirstRankAreValuesOfAnyKind) {
  on_first_rank(world(), [] {});
  EXPECT_THROW(on_first_rank(world(), [] { throw std::runtime_error("no"); }), SharedError);
  EXPECT_TRUE(on_first_rank(world(), [] { return rank() == 0; }));
  using Scores = std::vector<std::pair<std::string, double>>;
  const Scores scores{{"exact", 0.1 + static_cast<double>(rank())}, {"loss", std::nan("")}};
  const Scores of_first = on_first_rank(world(), [&] { return scores; });
  ASSERT_EQ(of_first.size(), 2u);
  EXPECT_EQ(of_first[0], (std::pair<std::string, double>("exact", 0.1)));
  EXPECT_TRUE(std::isnan(of_first[1].second));
}

TEST(Agreement, AnErrorOfAnyRankIsAnErrorOfAll) {
  on_every_rank(world(), [] {});
  const auto last_fails = [] {
    if (rank() == ranks() - 1) throw std::invalid_argument("no such file");
  };
  const std::string name = ranks() == 1 ? "" : "rank " + std::to_string(ranks() - 1) + ": ";
  EXPECT_EQ(tests::error_of([&] { on_every_rank(world(), last_fails); }), name + "no such file");
  const auto all_fail = [] { throw std::runtime_error("error of rank " + std::to_string(rank())); };
  const std::string first = ranks() == 1 ? "" : "rank 0: ";
  EXPECT_EQ(tests::error_of([&] { on_every_rank(world(), all_fail); }), first + "error of rank 0");
}

}  // namespace
}  // namespace mylos::parallel
