#include "parallel/launch/mpi_watch.hpp"

#include "core/base/process/watchdog.hpp"
#include "core/base/text/standard_output.hpp"
#include "parallel/communicator/file_work.hpp"
#include "parallel/communicator/mpi/mpi_check.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <limits>
#include <thread>
#include <utility>

namespace mylos::parallel {
namespace {

using Clock = std::chrono::steady_clock;

/// Wait this long before a peer counts as gone, in seconds. A process that ends normally has completed its last
/// operation before its peers see it gone, but they may not have noticed yet that the operation is done.
constexpr double gone_for_sure = 0.15;
/// The latest turn of a rank to tell that a peer is gone, in seconds.
constexpr double latest_turn = 3.0;
/// Time for the last messages to be sent.
constexpr std::chrono::milliseconds last_words{100};
/// How long a failing rank waits for the announcement of a lower one, and 1 ms more for each rank that the first rank
/// tells. It is told by way of the first rank, and each of the three looks every 0.1 s.
constexpr std::chrono::milliseconds announcement{500};
/// How long the operations under way may take to end after a failure, in seconds: NCCL needs some for many ranks. At
/// most half the time limit, so that this rank ends before others report that they wait for it.
constexpr double failure_patience = 10.0;
/// After this time the process ends without MPI and kills its peers, in seconds.
constexpr double abort_limit = 5.0;

constexpr double never = std::numeric_limits<double>::infinity();

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

bool is_done(MPI_Request& request) {
  int done = 0;
  MYLOS_CHECK_MPI(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
  return done != 0;
}

}  // namespace

MpiWatch::MpiWatch(const MpiGroup& ranks, std::vector<RankPlacement> placements, std::span<const NodePeer> peers)
    : ranks_(ranks),
      placements_(std::move(placements)),
      peers_(peers),
      heartbeat_(ranks.size, ranks.rank, [this](std::size_t to, const Beat& beat) { send(to, beat); }),
      gone_at_(never),
      failed_(ranks.size) {}

void MpiWatch::look(const Waiting& waiting) {
  own_ = state_of(waiting);
  if (waiting.failure != nullptr) limit_failure(*waiting.failure);
  const Heartbeat::Moment moment{seconds_since({}), limit_, own_, fails_};
  receive_all(moment);
  heartbeat_.look(moment);
  failed_ = heartbeat_.failed();
  look_for_peers(waiting.under_way, moment.now);
  if (!heartbeat_.late()) return;
  if (ranks_.rank == 0) end_all(describe_wait(heartbeat_.states(), placements_, *heartbeat_.late()));
  end_all(
      {fmt::format("rank 0 on {}, which all ranks report to, gives no response: stopped, or disconnected; rank {} "
                   "waits since {:.0f} s in: {}",
                   placements_[0].host, ranks_.rank, own_.seconds, activity_text(own_))});
}

bool MpiWatch::announce_error() {
  fails_ = true;
  const Clock::time_point end = Clock::now() + announcement + std::chrono::milliseconds(ranks_.size);
  while (failed_ >= std::max<std::size_t>(ranks_.rank, 1) && Clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return claim_report();
}

RankState MpiWatch::state_of(const Waiting& waiting) const {
  using Activity = RankState::Activity;
  RankState state{.activity = FileWork::is_under_way() ? Activity::files : Activity::computing,
                  .step = step_,
                  .bytes = waiting.name.bytes,
                  .group = waiting.name.group,
                  .sequence = waiting.name.sequence,
                  .seconds = seconds_since(waiting.since),
                  .file_seconds = FileWork::since(waiting.since).count(),
                  .progress_seconds = FileWork::progress_since(waiting.since).count()};
  if (waiting.under_way) {
    state.activity = Activity::waiting;
    state.file_seconds = state.progress_seconds = 0.0;
  }
  waiting.name.what.copy(state.operation.data(), state.operation.size() - 1);
  return state;
}

void MpiWatch::send(std::size_t to, const Beat& beat) {
  if (Clock::now() > sends_until_) return;
  Letter& letter = sending_.emplace_back(Letter{beat});
  MYLOS_CHECK_MPI(
      MPI_Isend(&letter.beat, sizeof(Beat), MPI_BYTE, ranks_.rank_of(to), ranks_.tag, ranks_.ranks, &letter.request));
  ++sent_;
}

bool MpiWatch::is_all_sent() {
  sending_.remove_if([](Letter& letter) { return is_done(letter.request); });
  return sending_.empty();
}

/// Never blocks: the rest of a message may never arrive if its sender has been stopped.
void MpiWatch::receive_all(const Heartbeat::Moment& moment) {
  is_all_sent();
  for (;;) {
    if (arriving_.request == MPI_REQUEST_NULL) {
      int there = 0;
      MPI_Message message = MPI_MESSAGE_NULL;
      MPI_Status status;
      MYLOS_CHECK_MPI(MPI_Improbe(MPI_ANY_SOURCE, ranks_.tag, ranks_.ranks, &there, &message, &status));
      if (there == 0) return;
      arriving_.from = static_cast<std::size_t>(status.MPI_SOURCE);
      MYLOS_CHECK_MPI(MPI_Imrecv(&arriving_.beat, sizeof(Beat), MPI_BYTE, &message, &arriving_.request));
    }
    if (!is_done(arriving_.request)) return;
    heartbeat_.receive(arriving_.from, arriving_.beat, moment);
  }
}

void MpiWatch::limit_failure(const Failure& failure) {
  fails_ = true;
  const double seconds = seconds_since(failure.since);
  if (seconds < std::min(limit_ / 2.0, failure_patience)) return;
  const std::string line = fmt::format("rank {}: {}; NCCL or the device has not ended its work for {:.0f} s since",
                                       ranks_.rank, failure.error, seconds);
  end_all(claim_report() ? Lines{line} : Lines());
}

void MpiWatch::look_for_peers(bool is_waiting, double now) {
  // A rank with an error of its own tells it, and ends without waiting for others.
  const std::vector<NodePeer> gone = is_waiting && !fails_ ? peers_.gone() : std::vector<NodePeer>();
  gone_at_ = gone.empty() ? never : std::min(gone_at_, now);
  const bool is_told = failed_ < ranks_.size;
  const RankPlacement& mine = placements_[ranks_.rank];
  const double turn = is_told ? 0.0 : std::min(turn_of(mine.rank_of_node, limit_), latest_turn);
  if (now < gone_at_ + gone_for_sure + turn) return;
  Lines names;
  for (const NodePeer& peer : gone) names.push_back(fmt::format("rank {} (process {})", peer.rank, peer.process));
  const std::string line = fmt::format(
      "{} on {} {} gone; its output, or the system's log if memory ran out, shows why; rank {} waits in: {}",
      fmt::join(names, ", "), mine.host, gone.size() == 1 ? "is" : "are", ranks_.rank, activity_text(own_));
  end_all(is_told ? Lines() : Lines{line});
}

void MpiWatch::end_all(const Lines& lines) {
  const auto kill = [this] {
    peers_.kill();
    ::_exit(1);
  };
  call_within(abort_limit, kill, [&] {
    if (!lines.empty()) log_text(fmt::format("mylos: error: {}\n", fmt::join(lines, "\nmylos: ")));
    sends_until_ = Clock::now() + last_words;
    try {
      if (!lines.empty()) heartbeat_.tell_all(own_);
      while (!is_all_sent() && Clock::now() < sends_until_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    } catch (const std::exception&) {
      // MPI may refuse a message to a rank that is gone. The launcher ends those that are not told.
    }
    return MPI_Abort(MPI_COMM_WORLD, 1);
  });
  ::_exit(1);
}

}  // namespace mylos::parallel
