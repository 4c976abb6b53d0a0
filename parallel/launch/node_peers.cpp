#include "parallel/launch/node_peers.hpp"

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

NodePeers::NodePeers(std::span<const NodePeer> peers) : peers_(peers.begin(), peers.end()) {
  // A descriptor is readable when the process has ended.
  for (const NodePeer& peer : peers) ended_.push_back({open_process(static_cast<pid_t>(peer.process)), POLLIN, 0});
}

NodePeers::~NodePeers() {
  for (const pollfd& each : ended_) {
    if (each.fd >= 0) ::close(each.fd);
  }
}

std::vector<NodePeer> NodePeers::gone() {
  ::poll(ended_.data(), ended_.size(), 0);  // leaves out negative descriptors
  std::vector<NodePeer> gone;
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    const bool ended = ended_[i].fd >= 0 ? ended_[i].revents != 0
                                         : ::kill(static_cast<pid_t>(peers_[i].process), 0) != 0 && errno == ESRCH;
    if (ended) gone.push_back(peers_[i]);
  }
  return gone;
}

void NodePeers::kill() const {
  for (const pollfd& each : ended_) {
    if (each.fd >= 0) send_kill(each.fd);
  }
}

}  // namespace mylos::parallel
