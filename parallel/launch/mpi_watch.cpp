#include "parallel/launch/mpi_watch.hpp"

#include "core/base/printable.hpp"
#include "parallel/communicator/file_work.hpp"
#include "parallel/communicator/mpi_check.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <thread>
#include <type_traits>

namespace mylos::parallel {
namespace {

using std::chrono::duration;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int watch_tag = 0;

/// A process that ends in order has passed the last operation before its peers see it gone, but they may not have
/// noticed that the operation is done.
constexpr milliseconds gone_for_sure{150};
/// One rank tells; the next ones do where it does not.
constexpr milliseconds first_tells{3000};
/// How long a rank with an error waits for the announcement of a lower one.
constexpr milliseconds announcement{500};
/// After this the process ends without MPI, and takes its peers along.
constexpr seconds abort_limit{5};

/// How long to wait for answers.
duration<double> patience(double limit) { return duration<double>(std::clamp(limit / 4, 1.0, 10.0)); }

void write_lines(const std::vector<std::string>& lines) {
  std::string text;
  for (std::size_t i = 0; i < lines.size(); ++i)
    text += (i == 0 ? "mylos: error: " : "mylos: ") + without_controls(lines[i]) + "\n";
  // In one piece, so that the lines of other ranks do not come between.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}

static_assert(std::is_trivially_copyable_v<RankMessage>);

RankMessage message_of(const RankState& state, bool question) {
  RankMessage message;
  message.question = question;
  message.activity = state.activity;
  message.step = state.step;
  message.bytes = state.bytes;
  message.group = state.group;
  message.sequence = state.sequence;
  message.seconds = state.seconds;
  message.file_seconds = state.file_seconds;
  std::copy_n(state.operation.data(), std::min(state.operation.size(), message.operation.size() - 1),
              message.operation.data());
  return message;
}

RankState state_in(const RankMessage& message, const std::string& host) {
  return {host,          message.activity, message.step,    message.operation.data(), message.bytes,
          message.group, message.sequence, message.seconds, message.file_seconds};
}

}  // namespace

MpiWatch::MpiWatch(const MpiGroup& ranks, std::vector<RankPlace> places, std::span<const NodePeer> peers)
    : ranks_(ranks), places_(std::move(places)), peers_(peers), failed_(places_.size()) {}

void MpiWatch::look(const Waiting& waiting) {
  if (has_error_ && !announced_) {
    for (std::size_t rank = 0; rank < places_.size(); ++rank) {
      if (rank != ranks_.rank) send(rank, {.error = true});
    }
    announced_ = true;
  }
  receive_all(waiting);
  if (waiting.under_way) {
    look_for_peers(waiting);
    look_at_limit(waiting);
  } else {
    asked_ = peers_gone_ = false;
    excused_ = 0.0;
  }
}

bool MpiWatch::announce_error() {
  has_error_ = true;
  const Clock::time_point end = Clock::now() + announcement;
  const auto is_decided = [&] { return announced_ && (ranks_.rank == 0 || failed_ < ranks_.rank); };
  while (!is_decided() && Clock::now() < end) std::this_thread::sleep_for(milliseconds(1));
  return failed_ > ranks_.rank;
}

RankState MpiWatch::state_of(const Waiting& waiting) const {
  using Activity = RankState::Activity;
  const Activity activity = waiting.under_way          ? Activity::waiting
                            : FileWork::is_under_way() ? Activity::files
                                                       : Activity::computing;
  return {places_[ranks_.rank].host,
          activity,
          step_,
          waiting.name.what.substr(0, RankMessage().operation.size() - 1),
          waiting.name.bytes,
          waiting.name.group,
          waiting.name.sequence,
          duration<double>(Clock::now() - waiting.since).count(),
          waiting.under_way ? 0.0 : FileWork::since(waiting.since).count()};
}

void MpiWatch::send(std::size_t rank, const RankMessage& message) {
  sent_.remove_if([](Sent& each) {
    int done = 0;
    MYLOS_CHECK_MPI(MPI_Test(&each.request, &done, MPI_STATUS_IGNORE));
    return done != 0;
  });
  Sent& sent = sent_.emplace_back(Sent{message, MPI_REQUEST_NULL});
  MYLOS_CHECK_MPI(MPI_Isend(&sent.message, sizeof(RankMessage), MPI_BYTE, static_cast<int>(rank), watch_tag,
                            ranks_.ranks, &sent.request));
}

void MpiWatch::receive_all(const Waiting& waiting) {
  for (;;) {
    int there = 0;
    MPI_Status status;
    MYLOS_CHECK_MPI(MPI_Iprobe(MPI_ANY_SOURCE, watch_tag, ranks_.ranks, &there, &status));
    if (there == 0) return;
    RankMessage message;
    MYLOS_CHECK_MPI(
        MPI_Recv(&message, sizeof message, MPI_BYTE, status.MPI_SOURCE, watch_tag, ranks_.ranks, MPI_STATUS_IGNORE));
    const auto from = static_cast<std::size_t>(status.MPI_SOURCE);
    if (message.error) {
      failed_ = std::min(failed_.load(), from);
      continue;
    }
    if (!states_.empty()) states_[from] = state_in(message, places_[from].host);
    if (message.question) send(from, message_of(state_of(waiting), false));
  }
}

void MpiWatch::ask_all(const Waiting& waiting) {
  states_.assign(places_.size(), {});
  for (std::size_t rank = 0; rank < places_.size(); ++rank) states_[rank].host = places_[rank].host;
  asked_ = true;
  asked_at_ = Clock::now();
  asked_group_ = waiting.name.group;
  asked_sequence_ = waiting.name.sequence;
  const RankMessage question = message_of(state_of(waiting), true);
  for (std::size_t rank = 0; rank < places_.size(); ++rank) {
    if (rank != ranks_.rank) send(rank, question);
  }
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
  // The lowest rank of the node that is there tells.
  const std::size_t node = places_[ranks_.rank].node;
  const auto is_gone = [&](std::size_t rank) {
    return std::any_of(gone.begin(), gone.end(), [&](const NodePeer& peer) { return peer.rank == rank; });
  };
  std::size_t first = 0;
  while (places_[first].node != node || is_gone(first)) ++first;
  if (now - gone_at_ < (first == ranks_.rank ? gone_for_sure : gone_for_sure + first_tells)) return;
  if (failed_ < places_.size()) end_all({});  // it has printed why
  std::vector<std::string> names;
  for (const NodePeer& peer : gone) names.push_back(fmt::format("rank {} (process {})", peer.rank, peer.process));
  end_all(
      {fmt::format("{} on {} {} gone; its own output, or the system's log where memory ran out, says why; rank {} "
                   "waits in: {}",
                   fmt::join(names, ", "), places_[ranks_.rank].host, gone.size() == 1 ? "is" : "are", ranks_.rank,
                   place_of(state_of(waiting)))});
}

/// Notes what the answers excuse: whether the wait was not too long when it was asked about.
bool MpiWatch::is_excused(const Waiting& waiting) {
  // One that does not answer may be the one that the others' files wait for.
  for (std::size_t rank = 0; rank < states_.size(); ++rank) {
    if (rank != ranks_.rank && states_[rank].activity == RankState::Activity::silent) return false;
  }
  excused_ = excused_seconds(states_, limit_);
  return duration<double>(asked_at_ - waiting.since).count() - excused_ < limit_;
}

void MpiWatch::look_at_limit(const Waiting& waiting) {
  const double limit = limit_;
  const bool same = waiting.name.group == asked_group_ && waiting.name.sequence == asked_sequence_;
  if (!same) {
    asked_ = false;
    excused_ = 0.0;
  }
  if (duration<double>(Clock::now() - waiting.since).count() < limit + excused_) return;
  if (!asked_) {
    ask_all(waiting);
    return;
  }
  states_[ranks_.rank] = state_of(waiting);
  // The lowest rank that waits tells.
  const auto first = std::find_if(states_.begin(), states_.end(), [](const RankState& state) {
    return state.activity == RankState::Activity::waiting;
  });
  const bool tells = static_cast<std::size_t>(first - states_.begin()) == ranks_.rank;
  const duration<double> later = tells ? duration<double>(0) : duration<double>(first_tells);
  if (Clock::now() - asked_at_ < patience(limit) + later) return;
  if (is_excused(waiting)) {
    asked_ = false;
    return;
  }
  end_all(describe_wait(states_, ranks_.rank));
}

void MpiWatch::end_all(const std::vector<std::string>& lines) const {
  write_lines(lines);
  std::thread([this] {
    std::this_thread::sleep_for(abort_limit);
    peers_.kill();
    ::_exit(1);
  }).detach();
  MPI_Abort(MPI_COMM_WORLD, 1);
  ::_exit(1);
}

}  // namespace mylos::parallel
