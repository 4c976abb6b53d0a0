#include "core/base/standard_output.hpp"
#include "parallel/communicator/counting_transport.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

/// Counts the communication of the collectives that runs use, for 1 to 16,384 ranks on nodes of 1, 4, 8 and 128 ranks:
/// messages and rounds of a rank, bytes that it sends, bytes that its node sends and receives, and its memory. No data
/// is moved.
namespace mylos::parallel {
namespace {

constexpr std::size_t long_bytes = std::size_t{64} << 20, short_bytes = std::size_t{64} << 10;

struct Operation {
  const char* name;
  std::size_t bytes;
  std::unique_ptr<Exchange> (*make)(Transport&, const RankGroup&, std::size_t bytes, std::byte* array);
};

std::unique_ptr<Exchange> all_reduce(Transport& transport, const RankGroup& group, std::size_t bytes,
                                     std::byte* array) {
  return make_all_reduce(transport, group, {}, ElementType::float32, bytes / 4, array);
}
std::unique_ptr<Exchange> reduce_scatter(Transport& transport, const RankGroup& group, std::size_t bytes,
                                         std::byte* array) {
  const Parts parts = divide(bytes / 4 / group.size() * group.size(), group.size());
  return make_reduce_scatter(
      transport, group, {},
      {ElementType::float32, array, parts, ElementType::float32, array + group.rank * parts.part * 4});
}
std::unique_ptr<Exchange> all_gather(Transport& transport, const RankGroup& group, std::size_t bytes,
                                     std::byte* array) {
  const std::size_t part = bytes / group.size();
  return make_all_gather(transport, group, {}, part, array + group.rank * part, array);
}
std::unique_ptr<Exchange> broadcast(Transport& transport, const RankGroup& group, std::size_t bytes, std::byte* array) {
  return make_broadcast(transport, group, {}, 0, bytes, array);
}
std::unique_ptr<Exchange> gather(Transport& transport, const RankGroup& group, std::size_t bytes, std::byte* array) {
  const std::size_t part = bytes / group.size();
  return make_gather(transport, group, 0, part, array + group.rank * part, array);
}

const std::vector<Operation> operations{
    {"all-reduce", long_bytes, all_reduce}, {"reduce-scatter", long_bytes, reduce_scatter},
    {"all-gather", long_bytes, all_gather}, {"all-reduce", short_bytes, all_reduce},
    {"broadcast", short_bytes, broadcast},  {"gather", short_bytes, gather}};

/// The largest counts of the ranks of the first node, each taken independently, and the network traffic of that node.
struct Row {
  ExchangeCount rank;
  std::size_t node_sent = 0, node_received = 0;
};

Row count(const Operation& operation, std::size_t ranks, std::size_t ranks_of_node, std::byte* array) {
  std::vector<std::size_t> nodes(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) nodes[rank] = rank / ranks_of_node;
  CountingRanks all(nodes, CountingRanks::Data::counted);
  const auto make = [&](Transport& transport, const RankGroup& group) {
    return operation.make(transport, group, operation.bytes, array);
  };
  const bool is_short = operation.bytes == short_bytes;
  const std::vector<ExchangeCount> every = is_short ? all.run(make) : std::vector<ExchangeCount>();
  Row row;
  for (std::size_t rank = 0; rank < std::min(ranks, ranks_of_node); ++rank) {
    const ExchangeCount one = is_short ? every[rank] : all.run_alone(rank, make);
    row.rank.messages = std::max(row.rank.messages, one.messages);
    row.rank.bytes = std::max(row.rank.bytes, one.bytes);
    row.rank.memory = std::max(row.rank.memory, one.memory);
    row.rank.rounds = std::max(row.rank.rounds, one.rounds);
    row.node_sent += one.network_sent;
    row.node_received += one.network_received;
  }
  for (const ExchangeCount& one : every) row.rank.rounds = std::max(row.rank.rounds, one.rounds);
  return row;
}

void print_row(const Operation& operation, std::size_t ranks, std::size_t ranks_of_node, const Row& row) {
  const auto times = [&](std::size_t bytes) {
    return static_cast<double>(bytes) / static_cast<double>(operation.bytes);
  };
  print(fmt::format("| {} | {} | {} | {} | {} | {} | {:.2f} | {:.2f} | {:.2f} | {:.1f} |\n", operation.name,
                    operation.bytes == long_bytes ? "64 MiB" : "64 KiB", ranks, ranks_of_node, row.rank.messages,
                    row.rank.rounds, times(row.rank.bytes), times(row.node_sent), times(row.node_received),
                    static_cast<double>(row.rank.memory) / (1 << 20)));
}

void count_all(bool brief) {
  const auto array = std::make_unique_for_overwrite<std::byte[]>(long_bytes);
  print(
      "| operation | array | ranks | a node | messages a rank | rounds | sent by a rank | sent by a node | received by "
      "a "
      "node | memory, MiB |\n|---|---|---|---|---|---|---|---|---|---|\n");
  for (const Operation& operation : operations) {
    for (std::size_t ranks = brief ? 16 : 1; ranks <= 16384; ranks *= brief ? 32 : 2) {
      for (const std::size_t ranks_of_node : {1u, 4u, 8u, 128u}) {
        if (ranks_of_node > ranks) continue;
        print_row(operation, ranks, ranks_of_node, count(operation, ranks, ranks_of_node, array.get()));
      }
    }
  }
}

}  // namespace
}  // namespace mylos::parallel

/// bench_scale [--brief]: --brief counts fewer numbers of ranks.
int main(int argc, char** argv) {
  mylos::parallel::count_all(argc > 1 && std::strcmp(argv[1], "--brief") == 0);
  mylos::flush_output();
  return EXIT_SUCCESS;
}
