#pragma once

#include "parallel/launch/watch_message.hpp"
#include "parallel/launch/watch_tree.hpp"

#include <cstddef>
#include <functional>

namespace mylos::parallel {

/// Announces along a tree which ranks end because of errors, so that if several do, only the lowest prints its error.
/// Each rank learns of the lowest failing rank, or of another one lower than itself. The number of messages is
/// proportional to the number of ranks, even if all of them fail.
class ErrorAnnouncement {
 public:
  using Send = std::function<void(std::size_t to, const WatchMessage& message)>;

  ErrorAnnouncement(std::size_t size, std::size_t rank, Send send);

  /// Announces that this rank ends.
  void announce() { spread(rank_, rank_); }
  /// Handles a message from `from` that rank `failed` ends.
  void receive(std::size_t from, std::size_t failed) { spread(failed, from); }

  /// The lowest rank known to end; the number of ranks if none is known.
  std::size_t lowest() const { return lowest_; }

 private:
  void spread(std::size_t failed, std::size_t from);

  WatchTree tree_;
  std::size_t rank_, lowest_;
  Send send_;
};

}  // namespace mylos::parallel
