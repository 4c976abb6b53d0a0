#include "tests/support/paths.hpp"
#include "tests/support/process.hpp"
#include "tests/support/sanitized.hpp"
#include "tests/support/temporary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <optional>

/// The program as seen by a user: exit codes, one-line errors, and only results on standard output.
namespace mylos::tests {
namespace {

using nlohmann::json;
using Words = std::vector<std::string>;

/// Expects that mylos ends with this exit code, exactly this line on standard error, and no standard output.
void expect_error(const Words& words, int exit_code, const std::string& line, const std::string& input = "") {
  const ProgramRun run = run_mylos(words, input);
  EXPECT_EQ(run.exit_code, exit_code);
  EXPECT_EQ(run.errors, "mylos: error: " + line + "\n");
  EXPECT_EQ(run.output, "");
}

TEST(Program, UsageErrorsAreOneLineAndExitTwo) {
  expect_error({}, 2, "no command; see mylos --help");
  expect_error({"trian"}, 2, "no command \"trian\"; did you mean train? (mylos --help lists them)");
  expect_error({"frobnicate"}, 2, "no command \"frobnicate\" (mylos --help lists them)");
  expect_error({"x\ny"}, 2, "no command \"x\\x0ay\" (mylos --help lists them)");
  expect_error({"train", "--epochs", "-1"}, 2, "--epochs -1: expected a number above 0 and at most 100000");
}

TEST(Program, HelpAndVersionGoToStandardOutput) {
  for (const Words& words : {Words{"--help"}, Words{"-h"}, Words{"help"}}) {
    const ProgramRun run = run_mylos(words);
    EXPECT_EQ(run.exit_code, 0);
    EXPECT_TRUE(run.output.starts_with("usage: mylos COMMAND")) << run.output;
    EXPECT_EQ(run.errors, "");
  }
  EXPECT_TRUE(run_mylos({"train", "--help"}).output.starts_with("usage: mylos train "));
  EXPECT_TRUE(run_mylos({"help", "train"}).output.starts_with("usage: mylos train "));
  EXPECT_THAT(run_mylos({"--version"}).output,
              testing::MatchesRegex("mylos 0\\.[0-9.]+ \\(([0-9a-f]+(-dirty)?|unknown)\\)\n"));
}

TEST(Program, AFullDiskIsAFailure) {
  const ProgramRun run = run_mylos({"--version"}, "", "/dev/full");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(run.errors, "mylos: error: cannot write to standard output: No space left on device\n");
}

TEST(Info, SaysWhatTheBuildIs) {
  const ProgramRun run = run_mylos({"info", "--json"});
  ASSERT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.errors, "");
  const json info = json::parse(run.output);
  for (const char* key : {"version", "commit", "compiler", "build_type", "kokkos", "kokkos_backend"}) {
    EXPECT_FALSE(info.at(key).get<std::string>().empty()) << key;
  }
  EXPECT_THAT(info.at("commit").get<std::string>(), testing::MatchesRegex("unknown|[0-9a-f]{7,40}(-dirty)?"));
  EXPECT_EQ(info.at("gemm_providers").at(0), "kokkos-kernels");
  EXPECT_GE(info.at("threads").get<int>(), 1);
  if (info.at("kokkos_backend") != "Cuda") {
    EXPECT_THAT(info.at("attention_bfloat16").get<std::string>(), testing::AnyOf("floats", "pairs", "tiles"));
  }
  EXPECT_NE(run_mylos({"info"}).output.find("kokkos_backend"), std::string::npos);
}

TEST(Info, ThreadsAreThoseAskedFor) {
  const EnvironmentVariable threads("OMP_NUM_THREADS", "3");
  const json info = json::parse(run_mylos({"info", "--json"}).output);
  EXPECT_EQ(info.at("threads"), info.at("kokkos_backend") == "Serial" ? 1 : 3);
}

bool has_avx2() {
  const auto features = json::parse(run_mylos({"info", "--json"}).output).at("cpu_features_present").get<Words>();
  return std::ranges::find(features, "avx2") != features.end();
}

TEST(Info, OpenBlasHasKernelsForThisCpu) {
  if (!has_avx2()) GTEST_SKIP() << "this CPU has no AVX2";
  const json info = json::parse(run_mylos({"info", "--json"}).output);
  if (!info.contains("openblas_kernels")) GTEST_SKIP() << "the build has another BLAS";
  EXPECT_NE(info.at("openblas_kernels"), "Prescott");
}

/// The program starts again, with the same words and the same input.
TEST(Program, StartsAgainIfOpenBlasDoesNotRecogniseTheCpu) {
  if (heap_is_sanitized) GTEST_SKIP() << "the sanitizer wants to be loaded first";
  if (!has_avx2()) GTEST_SKIP() << "this CPU has no AVX2";
  const EnvironmentVariable chosen("OPENBLAS_CORETYPE", std::nullopt);
  const EnvironmentVariable unknown("LD_PRELOAD", MYLOS_UNKNOWN_CPU);
  const json info = json::parse(run_mylos({"info", "--json"}).output);
  EXPECT_THAT(info.at("openblas_kernels").get<std::string>(), testing::AnyOf("SkylakeX", "Haswell"));
  const TemporaryDirectory directory;
  const std::string vocabulary = (directory / "a vocabulary.txt").string();
  write_file(vocabulary, "[PAD]\n[UNK]\n[CLS]\n[SEP]\nhello\n");
  const ProgramRun run = run_mylos({"tokenize", "--vocab", vocabulary}, "hello\n");
  EXPECT_EQ(run.output, "[4]\n");
  EXPECT_EQ(run.errors, "");
  expect_error({"frobnicate"}, 2, "no command \"frobnicate\" (mylos --help lists them)");
}

TEST(Info, TheKernelsThatAUserChoosesForOpenBlasStay) {
  const EnvironmentVariable kernels("OPENBLAS_CORETYPE", "Prescott");
  const json info = json::parse(run_mylos({"info", "--json"}).output);
  if (!info.contains("openblas_kernels")) GTEST_SKIP() << "the build has another BLAS";
  EXPECT_EQ(info.at("openblas_kernels"), "Prescott");
}

/// Returns the line of mylos doctor that contains " OpenBLAS ".
std::string doctor_on_openblas() {
  const TemporaryDirectory directory;
  const std::string report = run_mylos({"doctor", "--output", directory.path().string()}).output;
  const std::size_t name = report.find(" OpenBLAS ");
  if (name == std::string::npos) return {};
  const std::size_t begin = report.rfind('\n', name) + 1;
  return report.substr(begin, report.find('\n', name) - begin);
}

TEST(Program, DoctorSaysWhichKernelsOpenBlasWasToldToUse) {
  if (heap_is_sanitized) GTEST_SKIP() << "the sanitizer wants to be loaded first";
  if (!has_avx2()) GTEST_SKIP() << "this CPU has no AVX2";
  const EnvironmentVariable chosen("OPENBLAS_CORETYPE", std::nullopt);
  const EnvironmentVariable unknown("LD_PRELOAD", MYLOS_UNKNOWN_CPU);
  EXPECT_THAT(doctor_on_openblas(), testing::MatchesRegex("ok +OpenBLAS +does not recognise this CPU, and was told to "
                                                          "use its kernels for (SkylakeX|Haswell)"));
}

TEST(Program, DoctorSaysThatTheUserChoseOpenBlassKernels) {
  if (!has_avx2()) GTEST_SKIP() << "this CPU has no AVX2";
  const EnvironmentVariable kernels("OPENBLAS_CORETYPE", "Prescott");
  const std::string line = doctor_on_openblas();
  if (line.empty()) GTEST_SKIP() << "the build has another BLAS";
  EXPECT_THAT(line,
              testing::MatchesRegex("warning +OpenBLAS +uses its kernels for Prescott, a CPU without AVX, because "
                                    "OPENBLAS_CORETYPE=Prescott is set; unset it, or set it to "
                                    "(SkylakeX|Haswell)"));
}

class Tokenize : public testing::Test {
 protected:
  void SetUp() override { write_file(vocabulary(), "[PAD]\n[UNK]\n[CLS]\n[SEP]\nhello\nworld\n##s\nHello\n!\n"); }
  std::string vocabulary() const { return (directory_ / "vocab.txt").string(); }

  TemporaryDirectory directory_;
};

TEST_F(Tokenize, PrintsOneArrayALine) {
  EXPECT_EQ(run_mylos({"tokenize", "--vocab", vocabulary()}, "Hello worlds!\n\nxyz").output, "[4,5,6,8]\n[]\n[1]\n");
  EXPECT_EQ(run_mylos({"tokenize", "--vocab", vocabulary(), "--cased"}, "Hello hello\n").output, "[7,4]\n");
}

TEST_F(Tokenize, OffsetsCountCodePoints) {
  EXPECT_EQ(run_mylos({"tokenize", "--vocab", vocabulary(), "--offsets"}, "é worlds\n").output,
            "{\"tokens\":[\"[UNK]\",\"world\",\"##s\"],\"ids\":[1,5,6],\"offsets\":[[0,1],[2,7],[7,8]]}\n");
}

TEST_F(Tokenize, WrongInputIsNamed) {
  expect_error({"tokenize", "--vocab", "/no/vocab.txt"}, 1, "cannot read /no/vocab.txt: No such file or directory");
  const ProgramRun run = run_mylos({"tokenize", "--vocab", vocabulary()}, "hello\n\xff\n");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(run.errors, "mylos: error: standard input, line 2: not UTF-8 at byte 0; convert it to UTF-8\n");
}

TEST(TokenizeQuestions, OfTheExamplesAreHuggingFacesIds) {
  std::istringstream lines(read_file(golden_data() / "question_tokens.jsonl"));
  std::string input, expected;
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const json recorded = json::parse(line);
    input += recorded.at("text").get<std::string>() + "\n";
    expected += recorded.at("ids").dump() + "\n";
  }
  EXPECT_EQ(count, 1440u);
  const ProgramRun run = run_mylos({"tokenize", "--vocab", uncased_vocabulary().string()}, input);
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.errors, "");
  EXPECT_TRUE(run.output == expected) << "at least one line differs";
}

TEST(Fetch, NeedsAName) {
  expect_error({"fetch"}, 2, "fetch: too few arguments; usage: mylos fetch NAME");
  const ProgramRun run = run_mylos({"fetch", "no such name"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(run.error_lines().size(), 1u) << run.errors;
}

}  // namespace
}  // namespace mylos::tests
