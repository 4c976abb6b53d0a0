#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace mylos::parallel {

/// Another rank whose process this one can see.
struct NodePeer {
  std::size_t rank = 0;
  long process = 0;
};

/// Whether the processes of other ranks on this node are there: a launcher may not notice that one was killed. To ask
/// takes one call while all are.
class NodePeers {
 public:
  NodePeers() = default;
  /// Of processes that are there now.
  explicit NodePeers(std::span<const NodePeer> peers);
  ~NodePeers();
  NodePeers(const NodePeers&) = delete;
  NodePeers& operator=(const NodePeers&) = delete;

  /// Those whose process has ended, also where its parent has not asked for its end yet.
  std::vector<NodePeer> gone() const;
  /// Ends those that are there, stopped ones too.
  void kill() const;

 private:
  struct Watched {
    NodePeer peer;
    int descriptor;  ///< of the process, not its number, which another may be given; -1 where the system has none
  };
  bool may_have_changed() const;

  int any_ended_ = -1;  ///< what is readable when a process has ended; -1 where not all have a descriptor
  std::vector<Watched> watched_;
};

}  // namespace mylos::parallel
