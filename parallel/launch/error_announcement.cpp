#include "parallel/launch/error_announcement.hpp"

#include <utility>

namespace mylos::parallel {

ErrorAnnouncement::ErrorAnnouncement(std::size_t size, std::size_t rank, Send send)
    : tree_(size, 0), rank_(rank), lowest_(size), send_(std::move(send)) {}

void ErrorAnnouncement::spread(std::size_t failed, std::size_t from) {
  if (failed >= lowest_) return;
  const std::size_t before = std::exchange(lowest_, failed);
  const WatchMessage message{.kind = WatchMessage::Kind::error, .root = failed};
  if (const auto parent = tree_.parent(rank_); parent && *parent != from) send_(*parent, message);
  for (const std::size_t child : tree_.children(rank_)) {
    // Skip a child that already knows of a failing rank below itself: its whole subtree has higher numbers, and needs
    // to know of only one such rank.
    if (child != from && before >= child) send_(child, message);
  }
}

}  // namespace mylos::parallel
