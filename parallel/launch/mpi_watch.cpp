#include "parallel/launch/mpi_watch.hpp"

#include "core/base/printable.hpp"
#include "parallel/communicator/file_work.hpp"
#include "parallel/launch/watch_tree.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>
#include <thread>
#include <utility>

namespace mylos::parallel {
namespace {

using std::chrono::duration;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// Wait this long before a peer counts as gone. A process that ends normally has completed its last operation before
/// its peers see it gone, but they may not have noticed yet that the operation is done.
constexpr milliseconds gone_for_sure{150};
/// The first rank reports the error; the next ones report it only after this time.
constexpr milliseconds first_tells{3000};
/// Number of ranks that are notified first when the program ends: those that a further inquiry would let report the
/// same.
constexpr std::size_t next_tellers = 4;
/// Time for those messages to be sent.
constexpr milliseconds last_words{100};
/// How long a failing rank waits for the announcement of a lower one. On its way up and down the tree the announcement
/// may take up to one watch interval per rank.
constexpr milliseconds announcement{300}, announcement_level{200};
/// How long the operations under way may take to end after a failure, in seconds: NCCL needs some for many ranks. At
/// most half the time limit, so that this rank ends before others report that they wait for it.
constexpr double failure_patience = 10.0;
/// After this time the process ends without MPI and kills its peers.
constexpr seconds abort_limit{5};

void write_lines(const std::vector<std::string>& lines) {
  std::string text;
  for (std::size_t i = 0; i < lines.size(); ++i)
    text += (i == 0 ? "mylos: error: " : "mylos: ") + without_controls(lines[i]) + "\n";
  // Write all lines at once, so that lines of other ranks do not come in between.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace

MpiWatch::MpiWatch(const MpiGroup& ranks, std::vector<RankPlacement> placements, std::span<const NodePeer> peers)
    : rank_(ranks.rank),
      mail_(ranks),
      placements_(std::move(placements)),
      peers_(peers),
      failed_(placements_.size()),
      errors_(placements_.size(), rank_, [this](std::size_t to, const WatchMessage& message) { send(to, message); }),
      inquiry_(placements_.size(), rank_, [this](std::size_t to, const WatchMessage& message) { send(to, message); }) {}

void MpiWatch::look(const Waiting& waiting) {
  if (waiting.failure != nullptr) limit_failure(*waiting.failure);
  const RankState own = state_of(waiting);
  const WaitInquiry::Moment moment{duration<double>(Clock::now().time_since_epoch()).count(), limit_, own};
  receive_all(moment);
  if (has_error_ && !announced_) {
    errors_.announce();
    announced_ = true;
  }
  if (waiting.under_way) {
    look_for_peers(waiting);
  } else {
    peers_gone_ = false;
  }
  inquiry_.look(moment);
  // If another rank ended the program, it has reported why. A stopped rank that the launcher resumes finds others gone.
  if (!inquiry_.verdict() || (failed_ < placements_.size() && Clock::now() - failed_at_ < first_tells)) return;
  if (!waiting.under_way) return;  // what this rank waited for has come meanwhile
  std::vector<RankState> states = *inquiry_.verdict();
  for (std::size_t rank = 0; rank < states.size(); ++rank) states[rank].host = placements_[rank].host;
  announce_end(states);
  end_all(describe_wait(states, rank_));
}

void MpiWatch::announce_end(const std::vector<RankState>& states) {
  errors_.announce();
  std::size_t notified = 0;
  for (std::size_t rank = 0; rank < states.size() && notified < next_tellers; ++rank) {
    if (rank == rank_ || states[rank].activity != RankState::Activity::waiting) continue;
    send(rank, {.kind = WatchMessage::Kind::error, .root = rank_});
    ++notified;
  }
  const Clock::time_point end = Clock::now() + last_words;
  while (!mail_.is_all_sent() && Clock::now() < end) std::this_thread::sleep_for(milliseconds(1));
}

void MpiWatch::limit_failure(const Failure& failure) {
  has_error_ = true;
  const double seconds = duration<double>(Clock::now() - failure.since).count();
  if (seconds < std::min(limit_ / 2.0, failure_patience)) return;
  std::vector<std::string> lines;
  if (claim_report()) {
    lines.push_back(fmt::format("rank {}: {}; NCCL or the device has not ended its work for {:.0f} s since", rank_,
                                failure.error, seconds));
  }
  end_all(lines);
}

bool MpiWatch::announce_error() {
  has_error_ = true;
  const Clock::time_point end =
      Clock::now() + announcement + announcement_level * WatchTree(placements_.size(), 0).height();
  const auto is_decided = [&] { return announced_ && (rank_ == 0 || failed_ < rank_); };
  while (!is_decided() && Clock::now() < end) std::this_thread::sleep_for(milliseconds(1));
  return claim_report();
}

RankState MpiWatch::state_of(const Waiting& waiting) const {
  using Activity = RankState::Activity;
  const Activity activity = waiting.under_way          ? Activity::waiting
                            : FileWork::is_under_way() ? Activity::files
                                                       : Activity::computing;
  return {placements_[rank_].host,
          activity,
          step_,
          waiting.name.what.substr(0, sent_operation),
          waiting.name.bytes,
          waiting.name.group,
          waiting.name.sequence,
          duration<double>(Clock::now() - waiting.since).count(),
          waiting.under_way ? 0.0 : FileWork::since(waiting.since).count(),
          waiting.under_way ? 0.0 : FileWork::progress_since(waiting.since).count()};
}

void MpiWatch::send(std::size_t rank, const WatchMessage& message) {
  mail_.send(rank, bytes_of(message));
  ++sent_;
}

void MpiWatch::receive_all(const WaitInquiry::Moment& moment) {
  mail_.receive([&](std::size_t from, std::span<const std::byte> bytes) {
    const WatchMessage message = watch_message_in(bytes);
    if (message.kind == WatchMessage::Kind::error) {
      if (failed_ == placements_.size()) failed_at_ = Clock::now();
      failed_ = std::min(failed_.load(), message.root);
      errors_.receive(from, message.root);
    } else {
      inquiry_.receive(from, message, moment);
    }
  });
}

void MpiWatch::look_for_peers(const Waiting& waiting) {
  const std::vector<NodePeer> gone = peers_.gone();
  if (gone.empty()) return;
  const Clock::time_point now = Clock::now();
  if (!peers_gone_) {
    peers_gone_ = true;
    gone_at_ = now;
    return;
  }
  // The lowest remaining rank of the node reports.
  const std::size_t node = placements_[rank_].node;
  const auto is_gone = [&](std::size_t rank) {
    return std::any_of(gone.begin(), gone.end(), [&](const NodePeer& peer) { return peer.rank == rank; });
  };
  std::size_t first = 0;
  while (placements_[first].node != node || is_gone(first)) ++first;
  if (now - gone_at_ < (first == rank_ ? gone_for_sure : gone_for_sure + first_tells)) return;
  if (failed_ < placements_.size()) end_all({});  // the failed rank has reported its error
  std::vector<std::string> names;
  for (const NodePeer& peer : gone) names.push_back(fmt::format("rank {} (process {})", peer.rank, peer.process));
  end_all(
      {fmt::format("{} on {} {} gone; its output, or the system's log if memory ran out, shows why; rank {} "
                   "waits in: {}",
                   fmt::join(names, ", "), placements_[rank_].host, gone.size() == 1 ? "is" : "are", rank_,
                   activity_text(state_of(waiting)))});
}

void MpiWatch::end_all(const std::vector<std::string>& lines) const {
  write_lines(lines);
  try {
    std::thread([this] {
      std::this_thread::sleep_for(abort_limit);
      peers_.kill();
      ::_exit(1);
    }).detach();
  } catch (const std::system_error&) {  // thread limit reached: MPI_Abort then has no time limit
  }
  MPI_Abort(MPI_COMM_WORLD, 1);
  ::_exit(1);
}

}  // namespace mylos::parallel
