#include "parallel/launch/mpi_watch.hpp"

#include "tests/support/launch.hpp"
#include "tests/support/waiting.hpp"

#include <gmock/gmock.h>
#include <mpi.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

/// The watch over real ranks.
namespace mylos::parallel {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::seconds;

constexpr double limit = 40.0;

/// A watch over all ranks that checks only when the test asks it to.
class WatchOfRanks : public ::testing::Test {
 protected:
  WatchOfRanks() {
    MPI_Comm_dup(MPI_COMM_WORLD, &all_);
    watch_ =
        std::make_unique<MpiWatch>(make_mpi_group(all_), tests::launch().placements(), std::span<const NodePeer>());
    watch_->set_time_limit(std::chrono::duration<double>(limit));
  }
  ~WatchOfRanks() override {
    watch_.reset();
    MPI_Comm_free(&all_);
  }

  /// Performs a check; this rank waits in the same operation as all others.
  void look(Clock::time_point since) { watch_->look({name_, true, since}); }

  /// Checks until `is_done` on this rank and then on all ranks.
  template <class IsDone>
  void look_until_all(const IsDone& is_done) {
    tests::wait_until([&] {
      look_once();
      return is_done();
    });
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    for (int done = 0; done == 0;) {
      look_once();
      MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    }
  }

  std::size_t rank() const { return tests::launch().world().rank(); }
  std::size_t size() const { return tests::launch().world().size(); }

  std::unique_ptr<MpiWatch> watch_;

 private:
  void look_once() {
    look(Clock::now());
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  OperationName name_{"all-reduce of layer 3 gradients", 4096, 1, 7};
  MPI_Comm all_ = MPI_COMM_NULL;
};

TEST_F(WatchOfRanks, BeatsGoToTheFirstRankAndAllAnswerIt) {
  if (size() == 1) GTEST_SKIP() << "one rank waits for nobody";
  // The wait of the last rank ends after one look, which it tells too, so nothing is reported.
  const bool is_last = rank() + 1 == size();
  if (is_last) look(Clock::now() - seconds(41));
  const std::size_t least = rank() == 0 ? size() - 1 : is_last ? 2 : 1;
  look_until_all([&] { return watch_->sent() >= least; });
  EXPECT_GE(watch_->sent(), least);
  EXPECT_LE(watch_->sent(), is_last ? 3 : least);
}

class FailingWatch : public WatchOfRanks, public ::testing::WithParamInterface<const char*> {};

TEST_P(FailingWatch, TheLowestOfTheRanksThatFailPrints) {
  const std::string which = GetParam();
  const std::size_t lowest = which == "all" ? 0 : which == "the upper half" ? size() / 2 : size() - 1;
  std::future<bool> prints;
  if (rank() >= lowest) {
    prints = std::async(std::launch::async, [this] { return watch_->announce_error(); });
  }
  look_until_all([&] { return !prints.valid() || prints.wait_for(seconds(0)) == std::future_status::ready; });
  if (prints.valid()) {
    EXPECT_EQ(prints.get(), rank() == lowest);
  }
  EXPECT_LE(watch_->sent(), rank() == 0 ? 2 * size() : 2u) << "an announcement, and an answer if this took long";
}

INSTANTIATE_TEST_SUITE_P(Ranks, FailingWatch, ::testing::Values("all", "the upper half", "the last"));

}  // namespace
}  // namespace mylos::parallel
