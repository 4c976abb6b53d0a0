#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>

namespace mylos::data {

/// What a server said of a file: whether it has it, and the SHA-256 it gives for it (64 hex digits; empty where none).
struct Download {
  bool found = false;
  std::string sha256;
};

/// A server or a package index that could not be reached.
class Unreachable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Gets `url` into `file` with curl, which follows redirections, gives up on a server that stalls, and honours the
/// proxy variables. A file the server does not have is not an error. Throws Unreachable where no
/// server answers, and std::runtime_error where it refuses, with curl's reason.
Download download(const std::string& url, const std::filesystem::path& file);

/// The SHA-256 that the hub's X-Linked-Etag names among all headers of all redirections; empty where there is none.
std::string linked_sha256(std::string_view headers);

/// The SHA-256 of a file, 64 hex digits. Throws std::runtime_error where it cannot be read.
std::string sha256_of(const std::filesystem::path& file);

/// Throws std::runtime_error with both sums where `file`, which came from `source`, has not the SHA-256 `expected`.
void check_sha256(const std::filesystem::path& file, const std::string& expected, const std::string& source);

}  // namespace mylos::data
