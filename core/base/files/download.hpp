#pragma once

#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>

namespace mylos {

/// The result of a download: whether the server has the file and, from the Hugging Face hub, the file's SHA-256 (64 hex
/// digits) and its repository's commit (40 hex digits); each is empty if the server does not send it.
struct Download {
  bool found = false;
  std::string sha256 = {};
  std::string commit = {};
};

/// A server or package index could not be reached.
class Unreachable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Downloads `url` to `file` with curl, which gives up on stalled servers, honours the proxy variables and ignores
/// ~/.curlrc. A URL without a scheme is https; redirections are followed to https only. A missing file is not an error:
/// see Download::found. Throws Unreachable if no server answers, and std::runtime_error with curl's reason if the
/// server refuses, redirects to another scheme, or the file exceeds `most_bytes`. If `token` is not empty it is sent as
/// the bearer token, only to the server of `url`, and only over https or to this machine.
Download download(const std::string& url, const std::filesystem::path& file, std::uintmax_t most_bytes,
                  const std::string& token = {});

/// Returns the SHA-256 in the hub's X-Linked-Etag; `headers` are those of all redirections. Empty if there is none.
std::string linked_sha256(std::string_view headers);

/// Returns the commit in the hub's X-Repo-Commit; empty if there is none.
std::string repository_commit(std::string_view headers);

/// Returns the SHA-256 of a file as 64 hex digits. Throws std::runtime_error if the file cannot be read.
std::string sha256_of(const std::filesystem::path& file);

/// Checks that `file`, downloaded from `source`, has the SHA-256 `expected`. Throws std::runtime_error with both sums
/// if not.
void check_sha256(const std::filesystem::path& file, const std::string& expected, const std::string& source);

}  // namespace mylos
