#include "core/base/process/processors.hpp"

#include "tests/support/temporary.hpp"

#include <gmock/gmock.h>

#include <initializer_list>
#include <vector>

namespace mylos {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Processors set_of(std::initializer_list<std::size_t> members) {
  Processors processors;
  for (const std::size_t member : members) processors.set(member);
  return processors;
}

TEST(Processors, ThisProcessMayRunOnSome) {
  EXPECT_GE(allowed_processors().count(), 1u);
  EXPECT_TRUE((allowed_processors() & ~available_processors()).none());
}

TEST(Processors, ASetIsToldInRanges) {
  EXPECT_EQ(to_string(set_of({})), "");
  EXPECT_EQ(to_string(set_of({3})), "3");
  EXPECT_EQ(to_string(set_of({0, 1, 2, 5, 7, 8, 4095})), "0-2,5,7-8,4095");
}

TEST(Processors, ThreadsAreReadFromTheEnvironment) {
  const auto read = [](const std::string& value) {
    const tests::EnvironmentVariable variable("OMP_NUM_THREADS", value);
    return threads_from_environment();
  };
  EXPECT_EQ(read(""), 0u);
  EXPECT_EQ(read("6"), 6u);
  EXPECT_EQ(read("4,2"), 4u);
  for (const char* wrong : {"0", "many", "-1", "4x", "1025", " 3"}) {
    EXPECT_THAT(tests::error_of([&] { read(wrong); }),
                HasSubstr("OMP_NUM_THREADS=" + std::string(wrong) + ": expected a number of threads"));
  }
}

/// A node of two processors on which `runnable` threads run or wait. Process 7, ours, has two threads, one of which
/// runs.
class NodeLoadOf : public tests::TemporaryDirectory {
 public:
  explicit NodeLoadOf(std::size_t runnable) {
    tests::write_file(*this / "stat", "cpu  1 2 3\ncpu0 1 2 3\ncpu1 1 2 3\nintr 7\nprocs_running 4\n");
    tests::write_file(*this / "loadavg", "0.10 0.20 0.30 " + std::to_string(runnable) + "/140 4711\n");
    tests::write_file(path() / "7/task/7/stat", "7 (a) R) S 1 7");
    tests::write_file(path() / "7/task/8/stat", "8 (a) R 1 7");
  }
  std::string text(const std::vector<long>& own) const { return busy_text(node_load(own, path())); }
};

TEST(NodeLoad, CountsOnlyThreadsOfOthers) {
  EXPECT_EQ(NodeLoadOf(9).text({7}), "8 threads of other programs on 2 processors");
  EXPECT_EQ(NodeLoadOf(4).text({7}), "3 threads of other programs on 2 processors");
  EXPECT_EQ(NodeLoadOf(3).text({7}), "");
  EXPECT_EQ(NodeLoadOf(3).text({}), "3 threads of other programs on 2 processors");
  EXPECT_EQ(NodeLoadOf(3).text({99}), "3 threads of other programs on 2 processors") << "one that has ended";
}

TEST(NodeLoad, IsOfThisNodeAndUnknownWithoutProc) {
  EXPECT_GE(node_load({}).processors, allowed_processors().count());
  EXPECT_EQ(busy_text(node_load({}, "/nonexistent")), "");
}

TEST(Processors, RanksThatShareProcessorsDivideThem) {
  const std::vector<Processors> free(4, set_of({0, 1, 2, 3, 4, 5, 6, 7}));
  for (std::size_t rank = 0; rank < 4; ++rank) EXPECT_EQ(share_of_processors(free, rank), 2u);
  const std::vector<Processors> bound{set_of({0, 1, 2}), set_of({3, 4, 5})};
  EXPECT_EQ(share_of_processors(bound, 1), 3u);
  const std::vector<Processors> crowded(3, set_of({0, 1}));
  EXPECT_EQ(share_of_processors(crowded, 2), 1u);
}

TEST(Processors, RanksAreCountedForEachProcessorThatTheyShare) {
  const std::vector<Processors> free(4, set_of({0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(ranks_a_processor(free, 0), 1u);
  const std::vector<Processors> crowded(5, set_of({0, 1}));
  EXPECT_EQ(ranks_a_processor(crowded, 4), 3u);
  const std::vector<Processors> bound{set_of({0}), set_of({1}), set_of({1})};
  EXPECT_EQ(ranks_a_processor(bound, 0), 1u);
  EXPECT_EQ(ranks_a_processor(bound, 1), 2u);
  EXPECT_EQ(ranks_a_processor(std::vector<Processors>(1), 0), 1u);
}

TEST(Processors, RanksTiedToOneProcessorWhileOthersAreIdleAreTold) {
  const std::vector<std::size_t> ranks{4, 5, 6};
  const std::vector<Processors> tied{set_of({0}), set_of({1}), set_of({0})};
  const std::string error = tests::error_of([&] { check_pinning(tied, set_of({0, 1, 2, 3}), ranks, "node7"); });
  EXPECT_THAT(error, AllOf(HasSubstr("ranks 4, 6 on node7 may run on processor 0 only"),
                           HasSubstr("no rank may run on 2-3"), HasSubstr("--bind-to none")));
}

TEST(Processors, RanksWithinATooSmallSetAreTold) {
  const std::vector<std::size_t> ranks{0, 1, 2};
  const std::vector<Processors> tied{set_of({0, 1}), set_of({0}), set_of({1})};
  EXPECT_THAT(tests::error_of([&] {
                check_pinning(tied, set_of({0, 1, 2}), ranks, "a");
              }),
              HasSubstr("ranks 0, 1, 2 on a may run on processors 0-1 only"));
}

TEST(Processors, MoreRanksThanTheNodeHasProcessorsIsAllowed) {
  const std::vector<std::size_t> ranks{0, 1, 2};
  const std::vector<Processors> free(3, set_of({0, 1})), bound{set_of({0}), set_of({1}), set_of({2})};
  EXPECT_NO_THROW(check_pinning(free, set_of({0, 1}), ranks, "a"));
  // One rank per processor, with some processors left to the system.
  EXPECT_NO_THROW(check_pinning(bound, set_of({0, 1, 2, 3}), ranks, "a"));
}

TEST(Processors, VectorInstructionsAreThoseOfTheCpu) {
#if defined(__x86_64__)
  EXPECT_EQ(vector_instructions().find("avx2") != std::string::npos, __builtin_cpu_supports("avx2") != 0);
  EXPECT_EQ(vector_instructions().find("avx512f") != std::string::npos, __builtin_cpu_supports("avx512f") != 0);
#else
  GTEST_SKIP() << "only x86 CPUs name these instructions";
#endif
}

}  // namespace
}  // namespace mylos
