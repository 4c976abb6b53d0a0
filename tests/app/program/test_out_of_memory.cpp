#include "app/program/exit_codes.hpp"

#include "core/device.hpp"
#include "tests/app/tiny_run.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/sanitized.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

/// A run that cannot get memory ends with a one-line message.
namespace mylos::tests {
namespace {

using app::translated_allocation_failure;
using testing::HasSubstr;
using testing::Not;

TEST(OutOfMemory, KokkosWordsBecomeOurs) {
  const std::string kokkos =
      R"(rank 1: Kokkos ERROR: Host memory space failed to allocate 12.03 MiB (label="mylos::values::layer.3").)";
  EXPECT_EQ(translated_allocation_failure(kokkos),
            "rank 1: " + app::out_of_memory_text("12.03 MiB for mylos::values::layer.3"));
  EXPECT_THAT(app::out_of_memory_text("12.03 MiB for x"), HasSubstr("out of memory: 12.03 MiB for x"));
  EXPECT_EQ(translated_allocation_failure("Kokkos ERROR: something else"), std::nullopt);
}

/// Checks that the translated message is the one that Kokkos gives.
TEST(OutOfMemory, AnAllocationThatFailsIsTranslated) {
  if (heap_is_sanitized) GTEST_SKIP() << "the sanitizer ends the program itself";
  const std::string thrown =
      error_of([] { const Kokkos::View<char*, MemorySpace> too_much("test::too_much", std::size_t{1} << 47); });
  EXPECT_THAT(translated_allocation_failure(thrown).value_or(thrown), HasSubstr("out of memory: "));
  EXPECT_THAT(translated_allocation_failure(thrown).value_or(thrown), HasSubstr(" for test::too_much"));
}

class AddressSpace : public TinyRun {
 protected:
  void SetUp() override {
    if (heap_is_sanitized) GTEST_SKIP() << "the sanitizer reserves terabytes of addresses";
    if (!runs_on_host) GTEST_SKIP() << "CUDA reserves as many addresses as there is memory of all devices";
    TinyRun::SetUp();
  }

  /// Trains with an address space limited to this number of KiB.
  ProgramRun train(std::size_t kibibytes) const {
    const std::string script = "ulimit -v " + std::to_string(kibibytes) + "; exec \"$0\" \"$@\"";
    return RunningProgram({"-c", script, program(), "train", "--model", model_, "--train", train_, "--output", run_,
                           "--steps", "1", "--max-length", "60", "--doc-stride", "20"},
                          "", {}, "/bin/sh")
        .wait();
  }

  EnvironmentVariable threads_{"OMP_NUM_THREADS", "2"};
};

TEST_F(AddressSpace, ARunThatNeedsMoreIsRefusedBeforeItAllocates) {
  // Less than the libraries reserve and the program's own memory take together.
  const ProgramRun run = train(std::size_t{600} << 10);
  EXPECT_EQ(run.exit_code, 1);
  ASSERT_EQ(run.error_lines().size(), 1u) << run.errors;
  EXPECT_THAT(run.errors, HasSubstr(" are free (the address space is limited to 600.00 MiB: ulimit -v); "));
}

/// With little memory, a run ends in one line or succeeds.
TEST_F(AddressSpace, ALittleIsNoReasonToHangOrToCrash) {
  for (const std::size_t mebibytes : {150, 250, 350, 450, 550, 800}) {
    SCOPED_TRACE(mebibytes);
    const ProgramRun run = train(mebibytes << 10);
    EXPECT_THAT(run.errors, Not(HasSubstr("Kokkos")));
    if (run.exit_code == 0) continue;
    EXPECT_TRUE(run.exit_code == 1 || run.exit_code == 127) << run.exit_code << run.errors;
    EXPECT_EQ(run.error_lines().size(), 1u) << run.errors;
    std::filesystem::remove_all(run_);
  }
}

TEST(ThreadLimit, IsNamedInOneLine) {
  TemporaryDirectory directory;
  std::filesystem::permissions(directory.path(), std::filesystem::perms::all);
  write_tiny_model(directory / "model");
  write_file(directory / "train.json", tiny_questions());
  // The system does not limit the first user's threads. Another user who has none runs the program.
  const std::string script =
      "user=; test $(id -u) != 0 || user='setpriv --reuid=54321 --clear-groups'; $user prlimit --nproc=2 \"$0\" "
      "--version > /dev/null || exit 77; exec $user prlimit --nproc=2 \"$0\" \"$@\"";
  const ProgramRun run = RunningProgram({"-c", script, program(), "train", "--model", directory / "model", "--train",
                                         directory / "train.json", "--output", directory / "run", "--steps", "1",
                                         "--max-length", "60", "--doc-stride", "20"},
                                        "", {}, "/bin/sh")
                             .wait();
  if (run.exit_code == 77) GTEST_SKIP() << "setpriv or prlimit is missing, or another user may not run the program";
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(run.error_lines().size(), 1u) << run.errors;
  EXPECT_THAT(run.errors, HasSubstr("no thread could be started: ulimit -u allows 2 threads of this user"));
}

}  // namespace
}  // namespace mylos::tests
