#include "tests/parallel/communicator/nccl_stand_in/peer_sockets.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <list>
#include <utility>

namespace mylos::stand_in {
namespace {

constexpr int poll_milliseconds = 5;

[[noreturn]] void give_up_test(const char* what) {
  std::perror(what);
  std::abort();
}

int new_socket() {
  const int made = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (made < 0) give_up_test("stand-in for NCCL: socket");
  return made;
}

/// Returns a socket address with an abstract name, which leaves no file behind on Linux.
std::pair<sockaddr_un, socklen_t> address_of(const std::string& name, int rank) {
  const std::string whole = name + "-" + std::to_string(rank);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  whole.copy(address.sun_path + 1, sizeof address.sun_path - 1);
  return {address, static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + whole.size())};
}

using Header = std::array<std::uint64_t, 2>;  ///< kind, bytes

/// Bytes in transit in one direction: a header, then the data.
struct Transfer {
  int socket;
  Header header;
  std::byte* data;
  std::size_t bytes;
  Header seen{};
  std::size_t moved = 0;

  bool done() const { return moved == sizeof header + bytes; }
};
using Transfers = std::list<Transfer>;

/// Transfers as much as possible at once. `move(socket, memory, bytes)` is send or recv.
template <class Move>
void advance(Transfer& transfer, Header& header, const Move& move) {
  while (!transfer.done()) {
    const bool in_header = transfer.moved < sizeof header;
    const std::size_t offset = in_header ? transfer.moved : transfer.moved - sizeof header;
    std::byte* const memory = (in_header ? reinterpret_cast<std::byte*>(header.data()) : transfer.data) + offset;
    const ssize_t moved = move(transfer.socket, memory, (in_header ? sizeof header : transfer.bytes) - offset);
    if (moved <= 0) return;  // nothing now, or never again if the peer is gone
    transfer.moved += static_cast<std::size_t>(moved);
    if (transfer.moved == sizeof header && header != transfer.header) return;
  }
}

void send_some(Transfer& transfer) {
  advance(transfer, transfer.header,
          [](int socket, void* memory, std::size_t bytes) { return ::send(socket, memory, bytes, MSG_NOSIGNAL); });
}

/// Returns false on unexpected data.
bool receive_some(Transfer& transfer) {
  advance(transfer, transfer.seen,
          [](int socket, void* memory, std::size_t bytes) { return ::recv(socket, memory, bytes, 0); });
  return transfer.moved < sizeof(Header) || transfer.seen == transfer.header;
}

/// Calls `go_on` for the first transfer of each socket, and removes completed transfers.
template <class GoOn>
bool for_each_first(Transfers& transfers, const GoOn& go_on) {
  std::vector<int> blocked;
  for (auto each = transfers.begin(); each != transfers.end();) {
    if (std::ranges::find(blocked, each->socket) == blocked.end()) {
      if (!go_on(*each)) return false;
      if (each->done()) {
        each = transfers.erase(each);
        continue;
      }
      blocked.push_back(each->socket);
    }
    ++each;
  }
  return true;
}

void wait_for_any(const Transfers& out, const Transfers& in) {
  std::vector<pollfd> sockets;
  for (const Transfer& each : out) sockets.push_back({each.socket, POLLOUT, 0});
  for (const Transfer& each : in) sockets.push_back({each.socket, POLLIN, 0});
  ::poll(sockets.data(), sockets.size(), poll_milliseconds);
  const auto gone = [](const pollfd& each) { return (each.revents & (POLLHUP | POLLERR)) != 0; };
  if (std::ranges::any_of(sockets, gone)) ::usleep(1000 * poll_milliseconds);
}

}  // namespace

PeerSockets::PeerSockets(std::string name, int rank, int ranks)
    : name_(std::move(name)), rank_(rank), listener_(new_socket()), sockets_(static_cast<std::size_t>(ranks), -1) {
  const auto [address, length] = address_of(name_, rank);
  if (::bind(listener_, reinterpret_cast<const sockaddr*>(&address), length) != 0 || ::listen(listener_, ranks) != 0) {
    give_up_test("stand-in for NCCL: listen");
  }
}

PeerSockets::~PeerSockets() {
  for (const int socket : sockets_) {
    if (socket >= 0) ::close(socket);
  }
  ::close(listener_);
}

bool PeerSockets::connect() {
  for (int lower = 0; lower < rank_; ++lower) {
    int& socket = sockets_[static_cast<std::size_t>(lower)];
    if (socket >= 0) continue;
    const int made = new_socket();
    const auto [address, length] = address_of(name_, lower);
    if (::connect(made, reinterpret_cast<const sockaddr*>(&address), length) != 0 ||
        ::send(made, &rank_, sizeof rank_, MSG_NOSIGNAL) != sizeof rank_) {
      ::close(made);  // the peer does not listen yet
      continue;
    }
    socket = made;
  }
  for (int accepted = 0; (accepted = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;) {
    int from = -1;
    pollfd waiting{accepted, POLLIN, 0};
    ::poll(&waiting, 1, 1000);
    if (::recv(accepted, &from, sizeof from, 0) != sizeof from) give_up_test("stand-in for NCCL: accept");
    sockets_[static_cast<std::size_t>(from)] = accepted;
  }
  return std::ranges::count(sockets_, -1) == 1;  // this rank's own
}

PeerSockets::Outcome PeerSockets::exchange(std::uint64_t kind, const std::vector<Message>& sent,
                                           const std::vector<Message>& received, const std::atomic<bool>& give_up) {
  Transfers out, in;
  const auto transfer = [&](const Message& message) {
    return Transfer{
        sockets_[static_cast<std::size_t>(message.peer)], {kind, message.bytes}, message.data, message.bytes};
  };
  for (const Message& message : sent) out.push_back(transfer(message));
  for (const Message& message : received) in.push_back(transfer(message));
  for (;;) {
    for_each_first(out, [](Transfer& each) { return send_some(each), true; });
    if (!for_each_first(in, receive_some)) return Outcome::mismatch;
    if (out.empty() && in.empty()) return Outcome::done;
    if (give_up) return Outcome::given_up;
    wait_for_any(out, in);
  }
}

}  // namespace mylos::stand_in
