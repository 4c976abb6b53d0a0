#include "parallel/communicator/exchanges/rank_sum.hpp"
#include "parallel/planning/counting_transport.hpp"
#include "tests/parallel/communicator/ranks_on_nodes.hpp"
#include "tests/support/rank_values.hpp"

#include <gmock/gmock.h>

#include <memory>
#include <vector>

/// Communicators over MPI on one machine, with ranks assigned to nodes by the tests: their results, and their traffic,
/// which must equal that of the counting transport.
namespace mylos::parallel {
namespace {

std::size_t world_size() { return tests::launch().world().size(); }

std::vector<float> tree_sum(std::size_t count) {
  std::vector<std::vector<float>> arrays(world_size(), std::vector<float>(count));
  std::vector<const void*> parts;
  for (std::size_t rank = 0; rank < arrays.size(); ++rank) {
    for (std::size_t i = 0; i < count; ++i) arrays[rank][i] = tests::value_of_rank(rank, i);
    parts.push_back(arrays[rank].data());
  }
  std::vector<float> sums(count);
  sum_over_ranks(ElementType::float32, parts, count, ElementType::float32, sums.data());
  return sums;
}

Buffer on_host(std::vector<float>& values) {
  return {values.data(), values.size(), ElementType::float32, MemoryKind::host};
}

/// Expects that `over_mpi` sends on this rank what the counting transport counts for it.
template <class OverMpi>
void expect_counts(const RanksOnNodes& on_nodes, const char* what, const OverMpi& over_mpi,
                   const CountingRanks::Make& make) {
  const Traffic before = traffic();
  over_mpi();
  const Traffic sent = traffic() - before;
  CountingRanks counting(on_nodes.nodes, CountingRanks::Data::counted);
  const ExchangeCount count = counting.run(make)[tests::launch().world().rank()];
  EXPECT_EQ(sent, (Traffic{count.messages, count.bytes, count.network_sent})) << what;
}

TEST(RanksOnNodes, SumAndGatherAsPromisedAndSendWhatIsCounted) {
  const ExecutionSpace space;
  const std::size_t rank = tests::launch().world().rank(), size = world_size();
  for (const std::vector<std::size_t>& nodes : node_layouts(world_size())) {
    RanksOnNodes on_nodes(nodes);
    Communicator& ranks = *on_nodes.ranks;
    ranks.set_bucket(std::size_t{1} << 17);
    for (const SumOrder order : {SumOrder::nodes, SumOrder::ranks}) {
      ranks.set_order(order);
      const ExchangeRules rules = on_nodes.context.rules;
      for (const std::size_t part : {std::size_t{10}, std::size_t{30001}}) {
        const std::size_t count = part * size;
        const std::vector<float> expected = tree_sum(count);
        const bool same_bits = order == SumOrder::ranks || NodeMap(nodes).keeps_tree() || count * 4 <= 65536;
        std::vector<float> data(count), mine(part), gathered(count);
        for (std::size_t i = 0; i < count; ++i) data[i] = tests::value_of_rank(rank, i);
        std::byte* const all = reinterpret_cast<std::byte*>(data.data());
        expect_counts(
            on_nodes, "reduce-scatter",
            [&] { ranks.reduce_scatter(space, on_host(data), on_host(mine), "test").wait(space); },
            [&](Transport& transport, const RankGroup& group) {
              return make_reduce_scatter(
                  transport, group, rules,
                  {ElementType::float32, all, divide(count, size), ElementType::float32, all + group.rank * part * 4});
            });
        for (std::size_t i = 0; i < part; ++i) {
          const float sum = expected[rank * part + i];
          if (same_bits) {
            ASSERT_EQ(mine[i], sum);
          } else {
            ASSERT_NEAR(mine[i], sum, 0.01f);
          }
        }
        expect_counts(
            on_nodes, "all-gather",
            [&] { ranks.all_gather(space, on_host(mine), on_host(gathered), "test").wait(space); },
            [&](Transport& transport, const RankGroup& group) {
              return make_all_gather(transport, group, rules, {part * 4 * group.size(), part * 4},
                                     all + group.rank * part * 4, all);
            });
        expect_counts(
            on_nodes, "all-reduce", [&] { ranks.all_reduce(space, on_host(data), "test").wait(space); },
            [&](Transport& transport, const RankGroup& group) {
              return make_all_reduce(transport, group, rules, ElementType::float32, count, all);
            });
        if (same_bits) {
          EXPECT_EQ(gathered, expected);
          EXPECT_EQ(data, expected);
        }
        std::vector<float> on_root(rank == size - 1 ? count : 0);
        ranks.gather(space, on_host(mine), on_host(on_root), size - 1, "test").wait(space);
        if (rank == size - 1) EXPECT_EQ(on_root, gathered);
        std::vector<float> reported = rank == size - 1 ? gathered : std::vector<float>(count);
        ranks.broadcast(space, on_host(reported), size - 1, "test").wait(space);
        if (same_bits) EXPECT_EQ(reported, expected);
        EXPECT_LE(on_nodes.context.memory.size(), exchange_bytes(size, rules.bucket));
      }
    }
  }
}

TEST(GroupOfOne, MakesNoImageAndSubmitsNothing) {
  const ExecutionSpace space;
  MpiContext context;
  const std::size_t node = 0;
  const auto alone = make_mpi_communicator(context, make_mpi_group(MPI_COMM_SELF), 9, std::span(&node, 1));
  const Vector<float> data("test::data", 1000), other("test::other", 1000);
  Kokkos::deep_copy(data, 3.0f);
  alone->all_reduce(space, buffer_of(data), "test").wait(space);
  alone->reduce_scatter(space, buffer_of(data), buffer_of(data), "test").wait(space);
  alone->all_gather(space, buffer_of(data), buffer_of(other), "test").wait(space);
  alone->broadcast(space, buffer_of(data), 0, "test").wait(space);
  alone->barrier("test");
  const Event last = alone->split(0, 0)->all_reduce(space, buffer_of(other), "test");
  last.wait(space);
  EXPECT_TRUE(last.done());
  EXPECT_EQ(context.thread.submitted(), 0u);
  EXPECT_EQ(context.images.size(), 0u);
  const auto host = Kokkos::create_mirror_view_and_copy(HostSpace(), other);
  for (std::size_t i = 0; i < host.size(); ++i) EXPECT_EQ(host(i), 3.0f);
}

TEST(GroupOfOne, ComesAfterWhatWasSubmittedBefore) {
  const ExecutionSpace space;
  Communicator& all = tests::launch().world();
  const std::unique_ptr<Communicator> alone = all.split(all.rank(), 0);
  std::vector<float> values(50000, 1.0f), copy(values.size());
  const Event sum = all.all_reduce(space, on_host(values), "test");
  alone->all_gather(space, on_host(values), on_host(copy), "test").wait(space);
  EXPECT_TRUE(sum.done());
  EXPECT_THAT(copy, ::testing::Each(static_cast<float>(all.size())));
}

}  // namespace
}  // namespace mylos::parallel
