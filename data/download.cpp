#include "data/download.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string>

#include "core/error.hpp"
#include "data/files.hpp"
#include "data/subprocess.hpp"
#include "data/text_file.hpp"

namespace mylos::data {
namespace {

constexpr std::size_t sha256_digits = 64;
constexpr int curl_http_error = 22;
constexpr int curl_no_such_file = 37;  // of a file:// address

bool is_sha256(std::string_view text) {
  return text.size() == sha256_digits &&
         std::ranges::all_of(text, [](unsigned char character) { return std::isxdigit(character) != 0; });
}

std::string lower_case(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](unsigned char character) { return std::tolower(character); });
  return result;
}

}  // namespace

Download download(const std::string& url, const std::filesystem::path& file) {
  const std::filesystem::path headers = file.string() + ".headers";
  const auto result = run_process({"curl",
                                   "--fail",
                                   "--silent",
                                   "--show-error",
                                   "--location",  //
                                   "--connect-timeout",
                                   "15",
                                   "--speed-limit",
                                   "1000",  // bytes a second
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
                                   url});
  const auto text = std::filesystem::exists(headers) ? read_text(headers) : std::string();
  std::filesystem::remove(headers);
  if (result.exit_code == 0) return {true, linked_sha256(text)};
  std::filesystem::remove(file);
  const bool is_absent =
      (result.exit_code == curl_http_error && result.output == "404") || result.exit_code == curl_no_such_file;
  if (is_absent) return {};
  const std::string why = fmt::format("cannot fetch {}: {}", url, last_line(result.errors));
  if (result.exit_code != curl_http_error) throw Unreachable(why);
  // The hub answers so of a repository that does not exist, too.
  const bool is_refused = result.output == "401" || result.output == "403";
  fail(is_refused ? why + "; there is no such model, or it is private" : why);
}

std::string linked_sha256(std::string_view headers) {
  constexpr std::string_view name = "x-linked-etag:";
  for (const auto line : split_lines(headers)) {
    if (!lower_case(line).starts_with(name)) continue;
    std::string value(line.substr(name.size()));
    std::erase_if(value, [](char character) { return character == '"' || character == ' '; });
    if (is_sha256(value)) return lower_case(value);
  }
  return {};
}

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

}  // namespace mylos::data
