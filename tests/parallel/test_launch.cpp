#include "parallel/launch.hpp"

#include "parallel/agreement.hpp"
#include "tests/support/launch.hpp"
#include "tests/support/temporary.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include <set>

namespace mylos::parallel {
namespace {

TEST(Launch, KnowsWhereEachRankIs) {
  const Launch& launch = tests::launch();
  Communicator& world = tests::launch().world();
  ASSERT_EQ(launch.places().size(), world.size());
  EXPECT_EQ(launch.place().process, ::getpid());
  EXPECT_EQ(launch.place().rank_of_node, world.rank());  // the tests have one node
  EXPECT_EQ(launch.nodes(), 1u);
  EXPECT_EQ(launch.ranks_of_node(), world.size());
  std::set<long> processes;
  for (const RankPlace& place : launch.places()) {
    EXPECT_EQ(place.host, launch.place().host);
    EXPECT_EQ(place.node, 0u);
    processes.insert(place.process);
  }
  EXPECT_EQ(processes.size(), world.size());
  EXPECT_FALSE(launch.library().empty());
}

TEST(Launch, ThreadsAreThoseOfTheEnvironment) {
  EXPECT_EQ(tests::launch().threads(), 1u);  // OMP_NUM_THREADS in the test's registration
}

TEST(Mesh, GroupsAreNeighboursAndThoseThatHoldTheSame) {
  Communicator& world = tests::launch().world();
  for (std::size_t shard_size = 1; shard_size <= world.size(); ++shard_size) {
    if (world.size() % shard_size != 0) {
      EXPECT_THAT(tests::error_of([&] { Mesh(world, shard_size); }), ::testing::HasSubstr("--shard-size"));
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
