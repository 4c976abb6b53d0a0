#include "parallel/launch/launch.hpp"

#include "parallel/communicator/agreement.hpp"
#include "tests/support/launch.hpp"
#include "tests/support/temporary.hpp"

#include <gmock/gmock.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdlib>
#include <set>

namespace mylos::parallel {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// Timer slack of the main thread before MPI starts, in ns.
const int slack_at_start = ::prctl(PR_GET_TIMERSLACK);

TEST(Launch, KnowsWhereEachRankIs) {
  const Launch& launch = tests::launch();
  Communicator& world = tests::launch().world();
  ASSERT_EQ(launch.placements().size(), world.size());
  EXPECT_EQ(launch.placement().process, ::getpid());
  EXPECT_EQ(launch.placement().rank_of_node, world.rank());  // the tests use one node
  EXPECT_EQ(launch.nodes(), 1u);
  EXPECT_EQ(launch.ranks_of_node(), world.size());
  std::set<long> processes;
  for (const RankPlacement& placement : launch.placements()) {
    EXPECT_EQ(placement.host, launch.placement().host);
    EXPECT_EQ(placement.node, 0u);
    EXPECT_FALSE(placement.processors.empty());
    EXPECT_FALSE(placement.kind.empty());
    EXPECT_EQ(placement.kind, launch.placement().kind);
    processes.insert(placement.process);
  }
  EXPECT_EQ(processes.size(), world.size());
  EXPECT_FALSE(launch.library().empty());
}

TEST(Launch, ThreadsAreThoseOfTheEnvironment) {
  const char* const reported = std::getenv("OMP_NUM_THREADS");  // set by the test's registration, or by the user
  ASSERT_NE(reported, nullptr);
  EXPECT_EQ(tests::launch().threads(), std::stoul(reported));
}

/// While MPI starts, ranks that share a processor make their timers less precise.
TEST(Launch, TimersAreAsPreciseAsBefore) {
  tests::launch();
  EXPECT_EQ(::prctl(PR_GET_TIMERSLACK), slack_at_start);
}

TEST(Launch, RanksOnOneDeviceAreAnErrorThatNamesThem) {
  const std::vector<RankPlacement> apart{{"a", 1, 0, 0, "gpu-1"}, {"a", 2, 0, 1, "gpu-2"}, {"b", 3, 1, 0, "gpu-3"}};
  check_devices_apart(apart);
  check_devices_apart({{"a", 1, 0, 0, ""}, {"a", 2, 0, 1, ""}});  // a build for the host
  EXPECT_THAT(tests::error_of([] {
                check_devices_apart({{"a", 1, 0, 0, "gpu-1"}, {"b", 2, 1, 0, "gpu-2"}, {"b", 3, 1, 1, "gpu-2"}});
              }),
              AllOf(HasSubstr("ranks 1 and 2 on b compute on the same GPU (gpu-2)"), HasSubstr("--gpus-per-node"),
                    HasSubstr("`communicator mpi`")));
  const tests::EnvironmentVariable shared(share_gpus_variable, "1");
  check_devices_apart({{"a", 1, 0, 0, "gpu-1"}, {"a", 2, 0, 1, "gpu-1"}});
}

TEST(Launch, CommunicatorIsMpiUnlessNcclIsAskedFor) {
  Launch& launch = tests::launch();
  const Communicator* const world = &launch.world();
  launch.use_communicator("mpi", {});
  EXPECT_EQ(&launch.world(), world);
  EXPECT_THAT(tests::error_of([&] { launch.use_communicator("gloo", {}); }),
              HasSubstr("`communicator gloo`: it is auto, mpi or nccl"));
  if (!runs_on_host) GTEST_SKIP() << "a build for GPUs may have NCCL";
  launch.use_communicator("auto", {});
  EXPECT_EQ(&launch.world(), world);
  const auto has_none =
      AllOf(HasSubstr("this build has no NCCL"), HasSubstr("-DMYLOS_ENABLE_NCCL=ON"), HasSubstr("`communicator mpi`"));
  EXPECT_THAT(tests::error_of([&] { launch.use_communicator("nccl", {}); }), has_none);
  EXPECT_THAT(tests::error_of([&] { launch.make_nccl_ranks({}); }), has_none);
  EXPECT_EQ(&launch.world(), world);
}

TEST(Mesh, GroupsAreNeighboursAndThoseThatHoldTheSame) {
  Communicator& world = tests::launch().world();
  for (std::size_t shard_size = 1; shard_size <= world.size(); ++shard_size) {
    if (world.size() % shard_size != 0) {
      EXPECT_THAT(tests::error_of([&] { Mesh(world, shard_size); }), ::testing::HasSubstr("`shard-size "));
      continue;
    }
    const Mesh mesh(world, shard_size);
    EXPECT_EQ(mesh.shard().size(), shard_size);
    EXPECT_EQ(mesh.replicate().size(), world.size() / shard_size);
    EXPECT_EQ(mesh.shard().rank() + shard_size * mesh.replicate().rank(), world.rank());
    const auto rank = static_cast<std::int64_t>(world.rank()), size = static_cast<std::int64_t>(shard_size);
    EXPECT_EQ(gather(mesh.shard(), rank).front(), rank / size * size);
    EXPECT_EQ(gather(mesh.replicate(), rank).front(), rank % size);
  }
}

}  // namespace
}  // namespace mylos::parallel
