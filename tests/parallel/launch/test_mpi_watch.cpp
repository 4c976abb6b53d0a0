#include "parallel/launch/mpi_watch.hpp"

#include "tests/parallel/launch/simulated_watch.hpp"
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

/// The watch over real ranks sends the same messages as simulated ranks.
namespace mylos::parallel {
namespace {

using tests::SimulatedWatch;
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

TEST_F(WatchOfRanks, AnInquirySendsWhatSimulatedRanksSend) {
  if (size() == 1) GTEST_SKIP() << "one rank waits for nobody";
  for (const std::size_t alarmed : {size() - 1, std::size_t{0}}) {
    SimulatedWatch simulated(size(), limit);
    for (std::size_t each = 0; each < size(); ++each) simulated.set(each, SimulatedWatch::Activity::waiting, limit);
    simulated.run_to(limit - 0.05);
    simulated.set(alarmed, SimulatedWatch::Activity::waiting, -1.0);
    simulated.look(alarmed);
    simulated.set(alarmed, SimulatedWatch::Activity::waiting, limit);
    simulated.run_to(limit + 4.0);
    const std::size_t before = watch_->sent(), expected = before + simulated.sent_by(rank());
    const std::size_t excuses = watch_->excuses() + simulated.excuses(rank());
    if (rank() == alarmed) look(Clock::now() - seconds(41));
    look_until_all([&] { return watch_->sent() == expected && watch_->excuses() == excuses; });
    EXPECT_EQ(watch_->sent(), expected) << "alarmed by rank " << alarmed;
    EXPECT_EQ(watch_->excuses(), excuses);
    EXPECT_EQ(simulated.excuses(rank()), alarmed == 0 ? 0u : 1u);
    MPI_Barrier(MPI_COMM_WORLD);  // no rank is asked again before all have counted
  }
}

TEST(MpiMail, LongAndShortMessagesArriveFromAnyRank) {
  MPI_Comm all = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &all);
  const MpiGroup ranks = make_mpi_group(all);
  MpiMail mail(ranks);
  const std::vector<std::byte> longer(1000000, std::byte{7}), shorter(3, std::byte{9});
  mail.send((ranks.rank + 1) % ranks.size, longer);
  mail.send((ranks.rank + 1) % ranks.size, shorter);
  std::vector<std::vector<std::byte>> arrived;
  tests::wait_until([&] {
    mail.receive([&](std::size_t from, std::span<const std::byte> message) {
      EXPECT_EQ((from + 1) % ranks.size, ranks.rank);
      arrived.emplace_back(message.begin(), message.end());
    });
    return arrived.size() >= 2;
  });
  EXPECT_THAT(arrived, ::testing::UnorderedElementsAre(longer, shorter));
  MPI_Barrier(all);
  MPI_Comm_free(&all);
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
  EXPECT_LE(watch_->sent(), 2 * (1 + WatchTree::arity));
}

INSTANTIATE_TEST_SUITE_P(Ranks, FailingWatch, ::testing::Values("all", "the upper half", "the last"));

}  // namespace
}  // namespace mylos::parallel
