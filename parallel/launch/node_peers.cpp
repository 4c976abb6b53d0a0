#include "parallel/launch/node_peers.hpp"

#include <poll.h>
#include <sys/epoll.h>
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
  any_ended_ = ::epoll_create1(EPOLL_CLOEXEC);
  for (const Watched& each : watched_) {
    epoll_event ended{.events = EPOLLIN, .data = {}};
    if (any_ended_ < 0 ||
        (each.descriptor >= 0 && ::epoll_ctl(any_ended_, EPOLL_CTL_ADD, each.descriptor, &ended) == 0)) {
      continue;
    }
    ::close(any_ended_);
    any_ended_ = -1;
  }
}

NodePeers::~NodePeers() {
  if (any_ended_ >= 0) ::close(any_ended_);
  for (const Watched& each : watched_) {
    if (each.descriptor >= 0) ::close(each.descriptor);
  }
}

bool NodePeers::may_have_changed() const {
  epoll_event ended;
  return any_ended_ < 0 || ::epoll_wait(any_ended_, &ended, 1, 0) != 0;
}

std::vector<NodePeer> NodePeers::gone() const {
  std::vector<NodePeer> gone;
  if (!may_have_changed()) return gone;
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
