#include "parallel/communicator/exchanges/exchanges.hpp"

#include "parallel/communicator/exchanges/rank_sum.hpp"
#include "parallel/planning/counting_transport.hpp"
#include "tests/support/rank_values.hpp"

#include <gmock/gmock.h>

#include <bit>
#include <numeric>
#include <vector>

/// The exchange algorithms on simulated ranks: their results for many ranks, and their traffic.
namespace mylos::parallel {
namespace {

std::vector<std::size_t> nodes_of(std::size_t ranks, std::size_t ranks_of_node) {
  std::vector<std::size_t> nodes(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) nodes[rank] = rank / ranks_of_node;
  return nodes;
}

struct Values {
  Values(std::size_t ranks, std::size_t count) : of(ranks, std::vector<float>(count)) {
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      for (std::size_t i = 0; i < count; ++i) of[rank][i] = tests::value_of_rank(rank, i);
    }
  }
  std::vector<float> tree_sum() const {
    std::vector<const void*> parts;
    for (const std::vector<float>& each : of) parts.push_back(each.data());
    std::vector<float> sums(of.front().size());
    sum_over_ranks(ElementType::float32, parts, sums.size(), ElementType::float32, sums.data());
    return sums;
  }
  std::byte* bytes(std::size_t rank) { return reinterpret_cast<std::byte*>(of[rank].data()); }
  std::vector<std::vector<float>> of;
};

void expect_all_reduce(const std::vector<std::size_t>& nodes, std::size_t count, const ExchangeRules& rules,
                       bool bit_for_bit) {
  Values values(nodes.size(), count);
  const std::vector<float> expected = values.tree_sum();
  CountingRanks ranks(nodes, CountingRanks::Data::moved);
  ranks.run([&](Transport& transport, const RankGroup& group) {
    return make_all_reduce(transport, group, rules, ElementType::float32, count, values.bytes(group.rank));
  });
  for (std::size_t rank = 0; rank < nodes.size(); ++rank) {
    if (bit_for_bit) {
      ASSERT_EQ(values.of[rank], expected) << "rank " << rank << " of " << nodes.size();
    } else {
      ASSERT_EQ(values.of[rank], values.of[0]);
      ASSERT_THAT(values.of[rank], ::testing::Pointwise(::testing::FloatNear(0.01f), expected));
    }
  }
}

TEST(Exchanges, SumsAreTheTreeOverRanksOnNodesOfAPowerOfTwo) {
  for (const std::size_t ranks : {2u, 3u, 8u, 9u, 16u, 21u, 37u}) {
    for (const std::size_t ranks_of_node : {1u, 2u, 4u, 8u}) {
      for (const std::size_t count : {1u, 100u, 16385u, 40001u}) {
        expect_all_reduce(nodes_of(ranks, ranks_of_node), count, {.bucket = 1}, true);
      }
    }
  }
}

TEST(Exchanges, SumsKeepTheTreeOverRanksElsewhereIfAsked) {
  const std::vector<std::size_t> uneven{0, 0, 0, 1, 1, 2, 2, 2, 2, 2}, in_turns{0, 1, 2, 0, 1, 2, 0, 1};
  for (const std::vector<std::size_t>& nodes : {nodes_of(9, 3), nodes_of(20, 6), uneven, in_turns}) {
    for (const std::size_t count : {100u, 40001u}) {
      expect_all_reduce(nodes, count, {.bucket = 1, .order = SumOrder::ranks}, true);
      const bool is_short = count * sizeof(float) <= std::size_t{64} << 10;  // then it is the tree in any case
      expect_all_reduce(nodes, count, {.bucket = 1, .order = SumOrder::nodes}, is_short);
    }
  }
}

TEST(Exchanges, GathersBringEveryPartToItsPlace) {
  const std::vector<std::size_t> uneven{0, 0, 0, 1, 1, 2, 2, 2, 2, 2};
  for (const std::vector<std::size_t>& nodes : {nodes_of(5, 1), nodes_of(12, 4), nodes_of(33, 8), uneven}) {
    for (const std::size_t part : {1u, 3u, 5000u, 20000u}) {
      const std::size_t size = nodes.size(), root = size / 2;
      Values mine(size, part);
      std::vector<float> expected;
      for (const std::vector<float>& each : mine.of) expected.insert(expected.end(), each.begin(), each.end());
      Values all(size, size * part), gathered(size, size * part);
      CountingRanks ranks(nodes, CountingRanks::Data::moved);
      ranks.run([&](Transport& transport, const RankGroup& group) {
        return make_all_gather(transport, group, {.bucket = 1}, {size * part * sizeof(float), part * sizeof(float)},
                               mine.bytes(group.rank), all.bytes(group.rank));
      });
      ranks.run([&](Transport& transport, const RankGroup& group) {
        return make_gather(transport, group, root, part * sizeof(float), mine.bytes(group.rank),
                           gathered.bytes(group.rank));
      });
      for (const std::vector<float>& each : all.of) ASSERT_EQ(each, expected) << size << " ranks, parts of " << part;
      ASSERT_EQ(gathered.of[root], expected) << size << " ranks, parts of " << part;
      ranks.run([&](Transport& transport, const RankGroup& group) {
        return make_broadcast(transport, group, {.bucket = 1}, root, part * sizeof(float), mine.bytes(group.rank));
      });
      for (const std::vector<float>& each : mine.of) ASSERT_EQ(each, mine.of[root]);
    }
  }
}

TEST(Exchanges, LeavePaddingAtTheEndAsItIs) {
  const std::vector<std::size_t> uneven{0, 0, 0, 1, 1, 2, 2, 2, 2, 2};
  for (const std::vector<std::size_t>& nodes : {nodes_of(5, 1), nodes_of(12, 4), nodes_of(33, 8), uneven}) {
    for (const Parts& parts : {Parts{3, 2}, Parts{1, 1024}, Parts{5000, 1024}, Parts{40001, 20000}}) {
      SCOPED_TRACE(testing::Message() << nodes.size() << " ranks, " << parts.count << " in parts of " << parts.part);
      const std::size_t size = nodes.size(), whole = size * parts.part;
      const Parts bytes{parts.count * sizeof(float), parts.part * sizeof(float)};
      Values mine(size, parts.part), all(size, whole), sums(size, whole);
      const std::vector<float> expected = sums.tree_sum();
      const auto original = sums.of;  // also of `all`
      CountingRanks ranks(nodes, CountingRanks::Data::moved);
      ranks.run([&](Transport& transport, const RankGroup& group) {
        return make_all_gather(transport, group, {.bucket = 1}, bytes, mine.bytes(group.rank), all.bytes(group.rank));
      });
      ranks.run([&](Transport& transport, const RankGroup& group) {
        std::byte* const array = sums.bytes(group.rank);
        return make_reduce_scatter(
            transport, group, {.bucket = 1},
            {ElementType::float32, array, parts, ElementType::float32, array + group.rank * bytes.part});
      });
      for (std::size_t rank = 0; rank < size; ++rank) {
        for (std::size_t i = 0; i < whole; ++i) {
          const float gathered = mine.of[i / parts.part][i % parts.part];
          ASSERT_EQ(all.of[rank][i], i < parts.count ? gathered : original[rank][i]) << i;
        }
        for (std::size_t i = rank * parts.part; i < (rank + 1) * parts.part; ++i) {
          ASSERT_NEAR(sums.of[rank][i], i < parts.count ? expected[i] : original[rank][i], 0.01f) << i;
        }
      }
    }
  }
}

TEST(Exchanges, PaddingTakesNoMessages) {
  constexpr std::size_t part = 4096, count = 3 * part + 8;  // bytes
  const auto memory = std::make_unique_for_overwrite<std::byte[]>(4096 * part);
  for (const std::size_t ranks : {9u, 64u, 256u, 4096u}) {
    const Parts parts{count / sizeof(float), part / sizeof(float)};
    for (const bool sums : {false, true}) {
      CountingRanks all(nodes_of(ranks, 8), CountingRanks::Data::counted);
      std::size_t messages = 0, bytes = 0;
      for (const ExchangeCount& each : all.run([&](Transport&transport, const RankGroup&group) {
             std::byte* const mine = memory.get() + group.rank * part;
             return sums ? make_reduce_scatter(transport, group, {},
                                               {ElementType::float32, memory.get(), parts, ElementType::float32, mine})
                         : make_all_gather(transport, group, {}, {count, part}, mine, memory.get());
           })) {
        messages += each.messages;
        bytes += each.bytes;
      }
      EXPECT_LE(messages, 2 * ranks) << ranks << " ranks";
      EXPECT_LE(bytes, 2 * ranks * count) << ranks << " ranks";
    }
  }
}

/// An operation on a float array of `bytes`, in memory that is never accessed.
struct Operation {
  enum class Kind { all_reduce, reduce_scatter, all_gather } kind;
  ElementType type = ElementType::float32;

  CountingRanks::Make on(std::byte* array, std::size_t bytes, const ExchangeRules& rules) const {
    return [=, *this](Transport& transport, const RankGroup& group) {
      const std::size_t count = bytes / bytes_of(type), part = count / group.size();
      std::byte* const mine = array + group.rank * part * bytes_of(type);
      if (kind == Kind::all_reduce) return make_all_reduce(transport, group, rules, type, count, array);
      if (kind == Kind::all_gather) {
        const std::size_t part_bytes = part * bytes_of(type);
        return make_all_gather(transport, group, rules, {group.size() * part_bytes, part_bytes}, mine, array);
      }
      return make_reduce_scatter(transport, group, rules,
                                 {type, array, divide(part * group.size(), group.size()), type, mine});
    };
  }
};

/// Returns the counts of one node's ranks, or of all ranks if there are fewer.
std::vector<ExchangeCount> counts_of_node(std::size_t ranks, std::size_t ranks_of_node, std::size_t first,
                                          const CountingRanks::Make& make) {
  CountingRanks all(nodes_of(ranks, ranks_of_node), CountingRanks::Data::counted);
  std::vector<ExchangeCount> counts;
  for (std::size_t rank = first; rank < std::min(ranks, first + ranks_of_node); ++rank) {
    counts.push_back(all.run_alone(rank, make));
  }
  return counts;
}

TEST(Exchanges, ANodeSendsAndReceivesEachLongArrayAboutOnce) {
  constexpr std::size_t bytes = std::size_t{64} << 20;
  const auto memory = std::make_unique_for_overwrite<std::byte[]>(bytes);
  using enum Operation::Kind;
  for (const std::size_t ranks_of_node : {4u, 8u, 128u}) {
    for (const std::size_t ranks : {256u, 2048u, 16384u}) {
      for (const Operation& operation : {Operation{all_reduce}, Operation{reduce_scatter}, Operation{all_gather},
                                         Operation{all_reduce, ElementType::bfloat16}}) {
        const std::size_t first = ranks / 2;
        std::size_t sent = 0, received = 0;
        for (const ExchangeCount& count :
             counts_of_node(ranks, ranks_of_node, first, operation.on(memory.get(), bytes, {}))) {
          sent += count.network_sent;
          received += count.network_received;
          EXPECT_LE(count.memory, exchange_bytes(ranks)) << ranks << " ranks";
        }
        const bool widens = operation.type == ElementType::bfloat16;
        const double bound = (operation.kind == all_reduce ? 2.2 : 1.1) * static_cast<double>(bytes) * (widens ? 2 : 1);
        EXPECT_LE(static_cast<double>(sent), bound) << ranks << " ranks, " << ranks_of_node << " a node";
        EXPECT_LE(static_cast<double>(received), bound) << ranks << " ranks, " << ranks_of_node << " a node";
      }
    }
  }
}

TEST(Exchanges, FewRanksSendAShortArrayBetweenNodesAsOftenAsALongOne) {
  const auto memory = std::make_unique_for_overwrite<std::byte[]>(std::size_t{1} << 20);
  using enum Operation::Kind;
  for (const std::size_t nodes : {2u, 4u}) {
    for (const std::size_t bytes : {std::size_t{16} << 10, std::size_t{1} << 20}) {
      for (const Operation& operation : {Operation{all_reduce}, Operation{reduce_scatter}, Operation{all_gather}}) {
        CountingRanks all(nodes_of(2 * nodes, 2), CountingRanks::Data::counted);
        std::size_t sent = 0;
        for (const ExchangeCount& count : all.run(operation.on(memory.get(), bytes, {}))) sent += count.network_sent;
        EXPECT_EQ(sent, (operation.kind == all_reduce ? 2 : 1) * (nodes - 1) * bytes) << nodes << " nodes, " << bytes;
      }
    }
  }
}

/// A sum scatters and gathers, each in one round: node levels, which save bytes, would take more.
TEST(Exchanges, FewRanksExchangeAFewBytesInTheFewestRounds) {
  constexpr std::size_t bytes = std::size_t{4} << 10;
  const auto memory = std::make_unique_for_overwrite<std::byte[]>(bytes);
  using enum Operation::Kind;
  for (const std::size_t ranks_of_node : {1u, 2u, 8u}) {
    for (const Operation& operation : {Operation{all_reduce}, Operation{reduce_scatter}, Operation{all_gather}}) {
      CountingRanks all(nodes_of(8, ranks_of_node), CountingRanks::Data::counted);
      std::size_t rounds = 0;
      for (const ExchangeCount& count : all.run(operation.on(memory.get(), bytes, {}))) {
        rounds = std::max(rounds, count.rounds);
      }
      EXPECT_EQ(rounds, operation.kind == all_reduce ? 2u : 1u) << ranks_of_node << " ranks a node";
    }
  }
}

TEST(Exchanges, ShortArraysTakeRoundsThatGrowWithTheLogarithm) {
  constexpr std::size_t bytes = std::size_t{64} << 10;
  const auto memory = std::make_unique_for_overwrite<std::byte[]>(bytes);
  using enum Operation::Kind;
  for (const std::size_t ranks : {2u, 8u, 9u, 64u, 1000u, 4096u}) {
    CountingRanks all(nodes_of(ranks, 8), CountingRanks::Data::counted);
    for (const Operation& operation : {Operation{all_reduce}, Operation{reduce_scatter}, Operation{all_gather}}) {
      std::size_t rounds = 0, messages = 0;
      for (const ExchangeCount& count : all.run(operation.on(memory.get(), bytes, {}))) {
        rounds = std::max(rounds, count.rounds);
        messages += count.messages;
        EXPECT_LE(count.memory, std::size_t{1} << 20);
      }
      EXPECT_LE(rounds, 2 * static_cast<std::size_t>(std::bit_width(ranks - 1)) + 3) << ranks << " ranks";
      if (ranks > 8) EXPECT_LE(messages, 2 * ranks) << ranks << " ranks";
    }
  }
}

TEST(Exchanges, MemoryDoesNotGrowWithTheNumberOfRanks) {
  constexpr std::size_t bytes = std::size_t{256} << 20, mebibyte = std::size_t{1} << 20;
  const auto memory = std::make_unique_for_overwrite<std::byte[]>(bytes);
  for (const std::size_t bucket : {mebibyte, default_bucket, 100 * mebibyte}) {
    for (const std::size_t ranks : {2u, 3u, 8u, 17u, 1024u, 16384u}) {
      for (const std::size_t ranks_of_node : {1u, 3u, 8u, 128u}) {
        CountingRanks all(nodes_of(ranks, ranks_of_node), CountingRanks::Data::counted);
        const Operation sum{Operation::Kind::reduce_scatter};
        EXPECT_LE(all.run_alone(ranks / 2, sum.on(memory.get(), bytes, {.bucket = bucket})).memory,
                  exchange_bytes(ranks, bucket))
            << ranks << " ranks, " << ranks_of_node << " a node, bucket " << bucket;
      }
    }
  }
}

}  // namespace
}  // namespace mylos::parallel
