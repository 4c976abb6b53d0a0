#pragma once

#include <poll.h>

#include <cstddef>
#include <span>
#include <vector>

namespace mylos::parallel {

/// Another rank whose process is visible from this one.
struct NodePeer {
  std::size_t rank = 0;
  long process = 0;
};

/// Checks whether the processes of other ranks on this node still exist, because a launcher may not notice that one was
/// killed. The check takes one system call.
class NodePeers {
 public:
  /// Watches `peers`, whose processes must exist now.
  explicit NodePeers(std::span<const NodePeer> peers);
  ~NodePeers();
  NodePeers(const NodePeers&) = delete;
  NodePeers& operator=(const NodePeers&) = delete;

  /// Returns the peers whose process has ended, including processes that their parent has not reaped yet.
  std::vector<NodePeer> gone();
  /// Kills the remaining processes, including stopped ones.
  void kill() const;

 private:
  std::vector<NodePeer> peers_;
  std::vector<pollfd> ended_;  ///< pidfd of each, because a process id may be reused; -1 if the system has none
};

}  // namespace mylos::parallel
