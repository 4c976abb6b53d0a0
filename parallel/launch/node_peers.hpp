#pragma once

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
/// killed. The check takes one system call as long as all exist.
class NodePeers {
 public:
  NodePeers() = default;
  /// Watches `peers`, whose processes must exist now.
  explicit NodePeers(std::span<const NodePeer> peers);
  ~NodePeers();
  NodePeers(const NodePeers&) = delete;
  NodePeers& operator=(const NodePeers&) = delete;

  /// Returns the peers whose process has ended, including processes that their parent has not reaped yet.
  std::vector<NodePeer> gone() const;
  /// Kills the remaining processes, including stopped ones.
  void kill() const;

 private:
  struct Watched {
    NodePeer peer;
    int descriptor;  ///< pidfd, because a process id may be reused; -1 if the system has none
  };
  bool may_have_changed() const;

  int any_ended_ = -1;  ///< epoll, readable when a process has ended; -1 unless all have descriptors
  std::vector<Watched> watched_;
};

}  // namespace mylos::parallel
