#pragma once

#include <map>
#include <string>
#include <thread>

namespace mylos::tests {

/// The reply to a GET request of one path.
struct HttpReply {
  int status = 200;
  std::string headers;  // each "Name: value\r\n"
  std::string body;
  std::string needs = {};  // required header line of the request; 401 without it
};

/// A web server on the loopback interface that serves the given paths and returns 404 for others.
class HttpServer {
 public:
  explicit HttpServer(std::map<std::string, HttpReply> replies);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// "http://127.0.0.1:<port>"
  std::string url() const;

 private:
  void serve() const;

  std::map<std::string, HttpReply> replies_;
  int listener_ = -1;
  int port_ = 0;
  std::thread thread_;
};

}  // namespace mylos::tests
