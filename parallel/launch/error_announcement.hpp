#pragma once

#include "parallel/launch/watch_message.hpp"
#include "parallel/launch/watch_tree.hpp"

#include <cstddef>
#include <functional>

namespace mylos::parallel {

/// Spreads along the tree that ranks end because of errors, so that of several the lowest prints its own. A rank hears
/// of the lowest one, or of one below itself. Messages grow with the number of ranks, also where all of them fail.
class ErrorAnnouncement {
 public:
  using Send = std::function<void(std::size_t to, const WatchMessage& message)>;

  ErrorAnnouncement(std::size_t size, std::size_t rank, Send send);

  /// This rank ends.
  void announce() { spread(rank_, rank_); }
  /// `from` says that `failed` does.
  void receive(std::size_t from, std::size_t failed) { spread(failed, from); }

  /// The lowest rank that is known to end; the number of ranks: none is.
  std::size_t lowest() const { return lowest_; }

 private:
  void spread(std::size_t failed, std::size_t from);

  WatchTree tree_;
  std::size_t rank_, lowest_;
  Send send_;
};

}  // namespace mylos::parallel
