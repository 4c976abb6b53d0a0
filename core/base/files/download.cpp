#include "core/base/files/download.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/files/files.hpp"
#include "core/base/files/text_file.hpp"
#include "core/base/process/subprocess.hpp"

namespace mylos {
namespace {

constexpr std::size_t sha256_digits = 64, commit_digits = 40;
constexpr int curl_other_scheme = 1;
constexpr int curl_http_error = 22;
constexpr int curl_no_such_file = 37;  // for file:// URLs
constexpr int curl_too_large = 63;

bool is_hex(std::string_view text, std::size_t digits) {
  return text.size() == digits &&
         std::ranges::all_of(text, [](unsigned char character) { return std::isxdigit(character) != 0; });
}

bool is_sha256(std::string_view text) { return is_hex(text, sha256_digits); }

std::string lower_case(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](unsigned char character) { return std::tolower(character); });
  return result;
}

/// Returns, in lower case, the first value of a header called `name` that is `digits` hex digits; empty if there is
/// none.
std::string hex_header(std::string_view headers, std::string_view name, std::size_t digits) {
  for (const auto line : split_lines(headers)) {
    if (!lower_case(line).starts_with(name)) continue;
    std::string value(line.substr(name.size()));
    std::erase_if(value, [](char character) { return character == '"' || character == ' '; });
    if (is_hex(value, digits)) return lower_case(value);
  }
  return {};
}

/// Returns the scheme of `url`; https if it has none (curl's own default is http).
std::string scheme_of(const std::string& url) {
  const std::size_t end = url.find("://");
  return end == std::string::npos ? "https" : url.substr(0, end);
}

bool may_take_token(const std::string& url) {
  return scheme_of(url) == "https" || url.starts_with("http://127.0.0.1:") || url.starts_with("http://localhost:");
}

[[noreturn]] void fail_refused(const std::string& why, const ProcessResult& result, std::uintmax_t most_bytes) {
  if (result.exit_code == curl_too_large) fail(fmt::format("{}; at most {} bytes are accepted", why, most_bytes));
  if (result.exit_code == curl_other_scheme) fail(why + "; redirections are followed to https only");
  if (result.exit_code != curl_http_error) throw Unreachable(why);
  // The hub also answers 401 for repositories that do not exist.
  const bool is_refused = result.output == "401" || result.output == "403";
  fail(is_refused ? why +
                        "; there is no such model, or it is private: HF_TOKEN must hold the token of somebody who may "
                        "read it"
                  : why);
}

}  // namespace

Download download(const std::string& url, const std::filesystem::path& file, std::uintmax_t most_bytes,
                  const std::string& token) {
  const std::filesystem::path headers = file.string() + ".headers";
  std::vector<std::string> words{"curl",
                                 "-q",  // ignores ~/.curlrc; must be the first argument
                                 "--proto-default",
                                 "https",
                                 "--proto",
                                 fmt::format("={}", scheme_of(url)),
                                 "--proto-redir",
                                 "=https",
                                 "--max-filesize",
                                 fmt::format("{}", most_bytes),
                                 "--fail",
                                 "--silent",
                                 "--show-error",
                                 "--location",  //
                                 "--connect-timeout",
                                 "15",
                                 "--speed-limit",
                                 "1000",  // bytes per second
                                 "--speed-time",
                                 "60",
                                 "--retry",
                                 "2",
                                 "--write-out",
                                 "%{http_code}",  //
                                 "--dump-header",
                                 headers.string(),
                                 "--output",
                                 file.string(),
                                 url};
  std::string header;
  if (!token.empty() && may_take_token(url)) {
    // Pass it on standard input: command lines are public, and a file would be left behind if this process is killed.
    header = fmt::format("Authorization: Bearer {}\n", token);
    words.insert(words.end(), {"--header", "@-"});
  }
  const auto result = run_process(words, header);
  const auto text = std::filesystem::exists(headers) ? read_text(headers) : std::string();
  std::filesystem::remove(headers);
  // Before 8.4.0, curl does not enforce --max-filesize if the server sends no size.
  const bool is_too_large =
      result.exit_code == 0 && std::filesystem::exists(file) && std::filesystem::file_size(file) > most_bytes;
  if (result.exit_code == 0 && !is_too_large) return {true, linked_sha256(text), repository_commit(text)};
  std::filesystem::remove(file);
  if (is_too_large) fail(fmt::format("cannot fetch {}: at most {} bytes are accepted", url, most_bytes));
  const bool is_absent =
      (result.exit_code == curl_http_error && result.output == "404") || result.exit_code == curl_no_such_file;
  if (is_absent) return {};
  fail_refused(fmt::format("cannot fetch {}: {}", url, last_line(result.errors)), result, most_bytes);
}

std::string linked_sha256(std::string_view headers) { return hex_header(headers, "x-linked-etag:", sha256_digits); }

std::string repository_commit(std::string_view headers) { return hex_header(headers, "x-repo-commit:", commit_digits); }

std::string sha256_of(const std::filesystem::path& file) {
  const auto result = run_process({"sha256sum", file.string()});
  const auto sum = result.output.substr(0, sha256_digits);
  ensure(result.exit_code == 0 && is_sha256(sum),
         fmt::format("no SHA-256 of {}: {}", file.string(), last_line(result.errors)));
  return sum;
}

void check_sha256(const std::filesystem::path& file, const std::string& expected, const std::string& source) {
  const auto sum = sha256_of(file);
  ensure(sum == expected, fmt::format("{} from {} has SHA-256 {}, not {}: it was changed or damaged, and is not kept",
                                      file.filename().string(), source, sum, expected));
}

}  // namespace mylos
