#include "parallel/communicator/nccl/nccl_library.hpp"

#include "parallel/communicator/nccl/nccl_communicator.hpp"
#include "parallel/communicator/nccl/nccl_version.hpp"
#include "tests/support/temporary.hpp"

#include <gmock/gmock.h>

/// Locating the NCCL library, which needs no device.
namespace mylos::parallel {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string own_name = own_nccl.name;

TEST(NcclLibrary, ThatIsNotThereIsOneLine) {
  EXPECT_THAT(tests::error_of([] { load_nccl("libno-such-nccl.so.2"); }),
              AllOf(HasSubstr(own_name + " cannot be loaded (libno-such-nccl.so.2"), HasSubstr("LD_LIBRARY_PATH"),
                    HasSubstr("`communicator mpi`"), Not(HasSubstr("\n"))));
}

TEST(NcclLibrary, WithoutAFunctionIsNotOne) {
  EXPECT_THAT(tests::error_of([] { load_nccl("libm.so.6"); }),
              AllOf(HasSubstr("libm.so.6 has no ncclGetVersion"), HasSubstr("`communicator mpi`")));
}

TEST(NcclLibrary, OfAnotherMajorVersionIsRefused) {
  EXPECT_THAT(tests::error_of([] { load_nccl(MYLOS_OTHER_NCCL); }),
              AllOf(HasSubstr("is " + own_name + " 3.1.2, and this build is for " + own_name + " 2."),
                    HasSubstr("LD_LIBRARY_PATH"), HasSubstr("`communicator mpi`")));
}

TEST(NcclLibrary, ItsErrorsSayWhatTheyAreOf) {
  if (const std::string obstacle = nccl_obstacle(); !obstacle.empty()) GTEST_SKIP() << obstacle;
  const NcclLibrary& library = nccl_library();
  EXPECT_EQ(library.version / 10000, NCCL_MAJOR);
  check_nccl(library, ncclSuccess, nullptr, "nothing");
  check_nccl(library, ncclInProgress, nullptr, "nothing");
  EXPECT_THAT(
      tests::error_of([&] { check_nccl(library, ncclInvalidArgument, nullptr, "a sum"); }),
      AllOf(HasSubstr(own_name + ": a sum: invalid argument"), HasSubstr("NCCL_DEBUG=INFO"), Not(HasSubstr("\n"))));
}

}  // namespace
}  // namespace mylos::parallel
