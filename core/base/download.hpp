#pragma once

#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>

namespace mylos {

/// A server's answer about a file: whether it has it, and, from the hub, its SHA-256 (64 hex digits) and the commit of
/// its repository (40); empty where the server names none.
struct Download {
  bool found = false;
  std::string sha256 = {};
  std::string commit = {};
};

/// A server or a package index that could not be reached.
class Unreachable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Gets `url` into `file` with curl, which gives up on a server that stalls, and honours the proxy variables but no
/// ~/.curlrc. An address without a scheme is https, and redirections are followed to https only. A file the server does
/// not have is not an error. Throws Unreachable where no server answers, and std::runtime_error with curl's reason
/// where it refuses, redirects elsewhere, or has a file of more than `most_bytes`. `token`, where there is one, says
/// who asks; it goes to the server of `url` alone, and to none without encryption but one of this machine.
Download download(const std::string& url, const std::filesystem::path& file, std::uintmax_t most_bytes,
                  const std::string& token = {});

/// The SHA-256 that the hub's X-Linked-Etag names among all headers of all redirections; empty where there is none.
std::string linked_sha256(std::string_view headers);

/// The commit that the hub's X-Repo-Commit names; empty where there is none.
std::string repository_commit(std::string_view headers);

/// The SHA-256 of a file, 64 hex digits. Throws std::runtime_error where it cannot be read.
std::string sha256_of(const std::filesystem::path& file);

/// Throws std::runtime_error with both sums where `file`, which came from `source`, has not the SHA-256 `expected`.
void check_sha256(const std::filesystem::path& file, const std::string& expected, const std::string& source);

}  // namespace mylos
