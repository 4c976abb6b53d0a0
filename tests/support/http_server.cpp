#include "tests/support/http_server.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <stdexcept>
#include <utility>

namespace mylos::tests {
namespace {

/// The first byte of a TLS client, which this server does not support.
constexpr char tls_handshake = 0x16;

/// Reads the request on `connection`, up to the blank line.
std::string read_request(int connection) {
  std::string request;
  std::array<char, 1024> buffer;
  while (request.find("\r\n\r\n") == std::string::npos) {
    const auto count = ::recv(connection, buffer.data(), buffer.size(), 0);
    if (count <= 0) return {};
    request.append(buffer.data(), static_cast<std::size_t>(count));
    if (request.front() == tls_handshake) return {};
  }
  return request;
}

std::string requested_path(const std::string& request) {
  const auto begin = request.find(' ') + 1;
  return request.substr(begin, request.find(' ', begin) - begin);
}

void send_all(int connection, const std::string& text) {
  std::size_t sent = 0;
  while (sent < text.size()) {
    const auto count = ::send(connection, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (count <= 0) return;
    sent += static_cast<std::size_t>(count);
  }
}

}  // namespace

HttpServer::HttpServer(std::map<std::string, HttpReply> replies) : replies_(std::move(replies)) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(listener_, 8) != 0 ||
      ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw std::runtime_error("cannot listen on the loopback interface");
  }
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { serve(); });
}

HttpServer::~HttpServer() {
  ::shutdown(listener_, SHUT_RDWR);  // makes accept return, so that the thread ends
  thread_.join();
  ::close(listener_);
}

std::string HttpServer::url() const { return "http://127.0.0.1:" + std::to_string(port_); }

void HttpServer::serve() const {
  for (;;) {
    const int connection = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) return;
    const std::string request = read_request(connection);
    const auto known = replies_.find(requested_path(request));
    auto reply = known == replies_.end() ? HttpReply{404, "", "none"} : known->second;
    if (request.find(reply.needs) == std::string::npos) reply = {401, "", "no"};
    send_all(connection, "HTTP/1.1 " + std::to_string(reply.status) +
                             " Reply\r\nConnection: close\r\nContent-Length: " + std::to_string(reply.body.size()) +
                             "\r\n" + reply.headers + "\r\n" + reply.body);
    ::close(connection);
  }
}

}  // namespace mylos::tests
