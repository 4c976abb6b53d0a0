#include "core/base/files/download.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <string>

#include "tests/support/http_server.hpp"
#include "tests/support/temporary.hpp"
#include "tests/support/waiting.hpp"

namespace mylos {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using tests::EnvironmentVariable;
using tests::error_of;
using tests::TemporaryDirectory;
using tests::write_file;

// SHA-256 of "abc", from FIPS 180-2.
constexpr auto sum_of_abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
constexpr auto commit = "0123456789abcdef0123456789abcdef01234567";
constexpr std::uintmax_t most_bytes = 1000;

TEST(Download, LinkedSumsAreFoundAmongTheHeadersOfAllRedirections) {
  const std::string sum(64, 'A');
  const std::string lower(64, 'a');
  EXPECT_EQ(linked_sha256("HTTP/2 302\r\nX-Linked-Etag: \"" + sum + "\"\r\n\r\nHTTP/2 200\r\netag: \"b\"\r\n"), lower);
  EXPECT_EQ(linked_sha256("x-linked-etag: " + sum + "\n"), lower);
  EXPECT_EQ(linked_sha256("X-Linked-Etag: \"0123456789012345678901234567890123456789\"\r\n"),
            "");  // a git id, not a SHA-256
  EXPECT_EQ(linked_sha256("etag: \"" + sum + "\"\r\n"), "");
  EXPECT_EQ(linked_sha256(""), "");
  EXPECT_EQ(repository_commit(std::string("HTTP/2 200\r\nX-Repo-Commit: ") + commit + "\r\n"), commit);
  EXPECT_EQ(repository_commit("x-repo-commit: ../../other\r\n"), "") << "it becomes part of an address";
}

TEST(Download, SumsAreCheckedAndBothShown) {
  const TemporaryDirectory directory;
  write_file(directory / "f", "abc");
  EXPECT_EQ(sha256_of(directory / "f"), sum_of_abc);
  EXPECT_NO_THROW(check_sha256(directory / "f", sum_of_abc, "there"));
  EXPECT_EQ(
      error_of([&] { check_sha256(directory / "f", "00", "there"); }),
      std::string("f from there has SHA-256 ") + sum_of_abc + ", not 00: it was changed or damaged, and is not kept");
  EXPECT_THAT(error_of([&] { sha256_of(directory / "absent"); }), HasSubstr("absent: sha256sum: "));
}

TEST(Download, GetsFilesAndTheirLinkedSums) {
  const TemporaryDirectory directory;
  const EnvironmentVariable no_proxy("no_proxy", "127.0.0.1");
  const tests::HttpServer server(
      {{"/file",
        {200, std::string("X-Linked-Etag: \"") + sum_of_abc + "\"\r\nX-Repo-Commit: " + commit + "\r\n", "abc"}},
       {"/secret", {403, "", "no"}}});
  const auto got = download(server.url() + "/file", directory / "f", most_bytes);
  EXPECT_TRUE(got.found);
  EXPECT_EQ(got.sha256, sum_of_abc);
  EXPECT_EQ(got.commit, commit);
  EXPECT_EQ(tests::read_file(directory / "f"), "abc");
  EXPECT_FALSE(download(server.url() + "/absent", directory / "g", most_bytes).found);
  EXPECT_EQ(error_of([&] { download(server.url() + "/secret", directory / "g", most_bytes); }),
            "cannot fetch " + server.url() +
                "/secret: curl: (22) The requested URL returned error: 403; there is no such model, or it is private: "
                "HF_TOKEN must hold the token of somebody who may read it");
  EXPECT_THROW(download("http://127.0.0.1:1/f", directory / "g", most_bytes), Unreachable);
  EXPECT_THAT(error_of([&] { download("http://127.0.0.1:1/f", directory / "g", most_bytes); }),
              StartsWith("cannot fetch http://127.0.0.1:1/f: curl: (7) "));
  try {
    download(server.url() + "/secret", directory / "g", most_bytes);
  } catch (const Unreachable&) {
    ADD_FAILURE() << "a server that answers was reached";
  } catch (const std::runtime_error&) {
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory.path()), {}), 1);
}

TEST(Download, ATokenOpensWhatIsPrivateAndIsNotLeftBehind) {
  const TemporaryDirectory directory;
  const EnvironmentVariable no_proxy("no_proxy", "127.0.0.1");
  const tests::HttpServer server({{"/secret", {200, "", "abc", "Authorization: Bearer hf_abc\r\n"}}});
  EXPECT_TRUE(download(server.url() + "/secret", directory / "f", most_bytes, "hf_abc").found);
  EXPECT_THAT(error_of([&] { download(server.url() + "/secret", directory / "g", most_bytes, "hf_other"); }),
              HasSubstr("returned error: 401; "));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory.path()), {}), 1);
}

/// Replaces curl by another program during its lifetime.
class CurlStandIn {
 public:
  CurlStandIn(const std::filesystem::path& folder, const std::string& script)
      : path_("PATH", folder.string() + ":/usr/bin:/bin") {
    write_file(folder / "curl", "#!/bin/sh\n" + script);
    std::filesystem::permissions(folder / "curl", std::filesystem::perms::owner_all);
  }

 private:
  EnvironmentVariable path_;
};

TEST(Download, NobodyElseCanReadATokenMeanwhile) {
  const TemporaryDirectory directory;
  const std::string noted = (directory / "noted").string();
  std::filesystem::create_directory(directory / "files");
  const CurlStandIn curl(directory / "bin", "echo \"$*\" >" + noted + ".words\ncat >" + noted + ".input\nls -A " +
                                                (directory / "files").string() + " >" + noted + ".files\n");
  download("https://127.0.0.1:1/f", directory / "files/f", most_bytes, "hf_abc");
  EXPECT_EQ(tests::read_file(noted + ".input"), "Authorization: Bearer hf_abc\n");
  EXPECT_THAT(tests::read_file(noted + ".words"), HasSubstr(" --header @-\n"));
  EXPECT_EQ(tests::read_file(noted + ".words").find("hf_abc"), std::string::npos);
  EXPECT_EQ(tests::read_file(noted + ".files"), "");
  download("http://example.org/f", directory / "files/f", most_bytes, "hf_abc");
  EXPECT_EQ(tests::read_file(noted + ".input"), "") << "sent without encryption";
  EXPECT_EQ(tests::read_file(noted + ".words").find("--header @"), std::string::npos);
}

/// Returns the process id that a stand-in wrote to the file when it started.
pid_t process_in(const std::filesystem::path& file) {
  pid_t process = 0;
  tests::wait_until([&] { return std::ifstream(file) >> process && process != 0; });
  return process;
}

TEST(Download, AKilledProcessLeavesNoToken) {
  const TemporaryDirectory directory;
  std::filesystem::create_directory(directory / "files");
  const std::filesystem::path running = directory / "running";
  const CurlStandIn curl(directory / "bin", "echo $$ >" + running.string() + ".part\nmv " + running.string() +
                                                ".part " + running.string() + "\nexec sleep 60\n");
  const pid_t child = ::fork();
  if (child == 0) {
    download("https://127.0.0.1:1/f", directory / "files/f", most_bytes, "hf_abc");
    ::_exit(0);
  }
  const pid_t started = process_in(running);
  ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status));
  ASSERT_GT(started, 0);
  ::kill(started, SIGKILL);
  EXPECT_TRUE(std::filesystem::is_empty(directory / "files"));
}

TEST(Download, RedirectionsAreFollowedToHttpsOnly) {
  const TemporaryDirectory directory;
  const EnvironmentVariable no_proxy("no_proxy", "127.0.0.1");
  const tests::HttpServer server({{"/moved", {302, "Location: /file\r\n", ""}}, {"/file", {200, "", "abc"}}});
  const std::string message = error_of([&] { download(server.url() + "/moved", directory / "f", most_bytes); });
  EXPECT_THAT(message, HasSubstr("curl: (1) "));
  EXPECT_THAT(message, HasSubstr("; redirections are followed to https only"));
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

TEST(Download, AnAddressWithoutASchemeIsHttps) {
  const TemporaryDirectory directory;
  const EnvironmentVariable no_proxy("no_proxy", "127.0.0.1");
  const tests::HttpServer server({{"/file", {200, "", "abc"}}});
  const std::string bare = server.url().substr(std::string("http://").size());
  EXPECT_THAT(error_of([&] { download(bare + "/file", directory / "f", most_bytes); }),
              HasSubstr("curl: (35) "));  // the server does not support TLS
}

TEST(Download, FilesThatAreTooLargeAreRefused) {
  const TemporaryDirectory directory;
  const EnvironmentVariable no_proxy("no_proxy", "127.0.0.1");
  const tests::HttpServer server({{"/file", {200, "", std::string(most_bytes + 1, 'x')}}});
  EXPECT_THAT(error_of([&] { download(server.url() + "/file", directory / "f", most_bytes); }),
              HasSubstr("; at most 1000 bytes are accepted"));
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
  EXPECT_TRUE(download(server.url() + "/file", directory / "f", most_bytes + 1).found);
}

TEST(Download, CurlsConfigurationOfTheUserIsNotRead) {
  const TemporaryDirectory home, directory;
  const EnvironmentVariable no_proxy("no_proxy", "127.0.0.1"), curl_home("CURL_HOME", home.path().string());
  write_file(home / ".curlrc", "trace-ascii = " + (home / "read").string() + "\n");
  const tests::HttpServer server({{"/file", {200, "", "abc"}}});
  EXPECT_TRUE(download(server.url() + "/file", directory / "f", most_bytes).found);
  EXPECT_FALSE(std::filesystem::exists(home / "read"));
}

}  // namespace
}  // namespace mylos
