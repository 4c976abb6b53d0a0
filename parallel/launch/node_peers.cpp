#include "parallel/launch/node_peers.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace mylos::parallel {
namespace {

#if defined(SYS_pidfd_open) && defined(SYS_pidfd_send_signal)
int open_process(pid_t process) { return static_cast<int>(::syscall(SYS_pidfd_open, process, 0)); }
void send_kill(int descriptor) { ::syscall(SYS_pidfd_send_signal, descriptor, SIGKILL, nullptr, 0); }
#else
int open_process(pid_t) { return -1; }
void send_kill(int) {}
#endif

}  // namespace

NodePeers::NodePeers(std::span<const NodePeer> peers) {
  for (const NodePeer& peer : peers) watched_.push_back({peer, open_process(static_cast<pid_t>(peer.process))});
}

NodePeers::~NodePeers() {
  for (const Watched& each : watched_) {
    if (each.descriptor >= 0) ::close(each.descriptor);
  }
}

std::vector<NodePeer> NodePeers::gone() const {
  std::vector<NodePeer> gone;
  for (const Watched& each : watched_) {
    bool ended = false;
    if (each.descriptor >= 0) {
      pollfd question{each.descriptor, POLLIN, 0};  // readable when the process has ended
      ended = ::poll(&question, 1, 0) == 1;
    } else {
      ended = ::kill(static_cast<pid_t>(each.peer.process), 0) != 0 && errno == ESRCH;
    }
    if (ended) gone.push_back(each.peer);
  }
  return gone;
}

void NodePeers::kill() const {
  for (const Watched& each : watched_) {
    if (each.descriptor >= 0) send_kill(each.descriptor);
  }
}

}  // namespace mylos::parallel
