#include "bench/bench_program.hpp"
#include "core/base/text/standard_output.hpp"
#include "parallel/planning/counting_transport.hpp"
#include "parallel/planning/strategy_record.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

/// bench_scale [--ranks N,...] [--mib N] [--json]: counts what ranks on nodes of 1, 4, 8 and 128 ranks send in the
/// collectives that runs use, and in a training step of each sharding strategy: messages and rounds of a rank, bytes
/// that it sends, bytes that its node sends and receives, and its memory. No data is moved. Long arrays and the units
/// of the model have --mib MiB. A step is that of the strategy itself, recorded.
namespace mylos::bench {
namespace {

using parallel::CollectiveCall;
using parallel::CountingRanks;
using parallel::ExchangeCount;
using parallel::Members;
using parallel::StrategyKind;
using Kind = CollectiveCall::Kind;

constexpr std::size_t mib = std::size_t{1} << 20, short_bytes = std::size_t{64} << 10, units_of_model = 8;
constexpr std::size_t node_sizes[] = {1, 4, 8, 128};

/// Consecutive ranks on nodes of equal size.
struct Layout {
  std::size_t ranks, ranks_of_node;

  std::size_t first_node() const { return std::min(ranks, ranks_of_node); }
  std::vector<std::size_t> nodes_of(const Members& members) const {
    std::vector<std::size_t> nodes;
    for (const std::size_t rank : members) nodes.push_back(rank / ranks_of_node);
    return nodes;
  }
};

/// The largest counts of the ranks of the first node, each taken independently, and the network traffic of that node.
struct Count {
  ExchangeCount rank;
  std::size_t node_sent = 0, node_received = 0;

  void add_rank(const ExchangeCount& one) {
    rank.messages = std::max(rank.messages, one.messages);
    rank.bytes = std::max(rank.bytes, one.bytes);
    rank.memory = std::max(rank.memory, one.memory);
    rank.rounds = std::max(rank.rounds, one.rounds);
    node_sent += one.network_sent;
    node_received += one.network_received;
  }
};

/// Adds the cost of a call that begins when the calls before it have ended.
void add_call(ExchangeCount& sum, const ExchangeCount& one) {
  sum.messages += one.messages;
  sum.bytes += one.bytes;
  sum.network_sent += one.network_sent;
  sum.network_received += one.network_received;
  sum.rounds += one.rounds;
  sum.memory = std::max(sum.memory, one.memory);
}

/// Counts calls, each once for all ranks that make the same one.
class CallCounts {
 public:
  explicit CallCounts(std::size_t largest) : array_(std::make_unique_for_overwrite<std::byte[]>(largest)) {}

  /// Returns the cost of a call on the ranks before `end` of a group. `nodes`: the node of each rank of the group.
  const std::vector<ExchangeCount>& of(CollectiveCall call, const std::vector<std::size_t>& nodes, std::size_t end) {
    call.group = CollectiveCall::all;
    std::vector<ExchangeCount>& known = known_[{call, nodes}];
    if (known.size() >= end) return known;
    CountingRanks ranks(nodes, CountingRanks::Data::counted);
    const auto make = [&](parallel::Transport& transport, const parallel::RankGroup& group) {
      return make_exchange(call, transport, group, {}, array_.get());
    };
    if (call.count * parallel::bytes_of(call.type) <= short_bytes) {
      known = ranks.run(make);
      std::size_t rounds = 0;
      for (const ExchangeCount& one : known) rounds = std::max(rounds, one.rounds);
      for (ExchangeCount& one : known) one.rounds = rounds;
    }
    while (known.size() < end) known.push_back(ranks.run_alone(known.size(), make));
    return known;
  }

 private:
  std::unique_ptr<std::byte[]> array_;  ///< never accessed
  std::map<std::pair<CollectiveCall, std::vector<std::size_t>>, std::vector<ExchangeCount>> known_;
};

/// The nodes of each group of a rank, and the rank's position in it.
struct GroupNodes {
  std::vector<std::size_t> nodes;
  std::size_t position = 0;
};
std::vector<GroupNodes> nodes_of_groups(std::size_t rank, const Layout& layout, std::size_t shard_size) {
  std::vector<GroupNodes> groups;
  for (const Members& members : parallel::groups_of(rank, layout.ranks, shard_size)) {
    const auto found = std::ranges::find(members, rank);
    groups.push_back({layout.nodes_of(members), static_cast<std::size_t>(found - members.begin())});
  }
  return groups;
}

/// Counts calls that follow each other.
Count count_calls(const std::vector<CollectiveCall>& calls, const Layout& layout, std::size_t shard_size,
                  CallCounts& counts) {
  Count count;
  for (std::size_t rank = 0; rank < layout.first_node(); ++rank) {
    const std::vector<GroupNodes> groups = nodes_of_groups(rank, layout, shard_size);
    ExchangeCount sum;
    for (const CollectiveCall& call : calls) {
      const auto& [nodes, position] = groups[call.group];
      add_call(sum, counts.of(call, nodes, position + 1)[position]);
    }
    count.add_rank(sum);
  }
  return count;
}

/// An operation, or a training step in a mode, on a number of ranks: its counts for each size of nodes.
struct ScaleRow {
  std::string name;
  std::size_t bytes, ranks;  ///< bytes of the array or of the model
  std::map<std::size_t, Count> counts;
};

struct OperationCase {
  const char* name;
  Kind kind;
  bool is_long;
};
constexpr OperationCase operations[] = {
    {"all-reduce", Kind::all_reduce, true}, {"reduce-scatter", Kind::reduce_scatter, true},
    {"all-gather", Kind::all_gather, true}, {"all-reduce", Kind::all_reduce, false},
    {"broadcast", Kind::broadcast, false},  {"gather", Kind::gather, false}};

ScaleRow count_operation(const OperationCase& operation, std::size_t ranks, std::size_t long_bytes,
                         CallCounts& counts) {
  ScaleRow row{operation.name, operation.is_long ? long_bytes : short_bytes, ranks, {}};
  std::size_t elements = row.bytes / sizeof(float);
  if (operation.kind != Kind::all_reduce && operation.kind != Kind::broadcast) elements -= elements % ranks;
  for (const std::size_t size : node_sizes) {
    if (size > ranks) continue;
    row.counts[size] = count_calls({{.kind = operation.kind, .count = elements}}, {ranks, size}, 1, counts);
  }
  return row;
}

ParameterTable model_of(std::size_t unit_bytes) {
  ParameterTable::Builder builder;
  for (std::size_t unit = 0; unit < units_of_model; ++unit) {
    builder.unit(fmt::format("{}", unit)).tensor(fmt::format("weight.{}", unit), {unit_bytes / sizeof(float)}, {});
  }
  return builder.build();
}

/// Counts a step of one micro-batch. Groups of `hybrid` are the nodes.
ScaleRow count_strategy(StrategyKind kind, std::size_t ranks, const ParameterTable& model, CallCounts& counts) {
  ScaleRow row{std::string(to_string(kind)), model.size() * sizeof(float), ranks, {}};
  std::vector<CollectiveCall> calls;
  for (const std::size_t size : node_sizes) {
    if (size > ranks) continue;
    // Groups of one rank, or a single one, are other modes.
    if (kind == StrategyKind::hybrid && (size == 1 || size == ranks || ranks % size != 0)) continue;
    if (kind == StrategyKind::hybrid || calls.empty()) {  // the calls of the other modes do not depend on the nodes
      const std::size_t shards = ranks_that_split(kind, size, ranks);
      calls = parallel::calls_of_step(
          {.settings = {.kind = kind}, .shards = shards, .replicas = ranks / shards, .table = model});
    }
    row.counts[size] = count_calls(calls, {ranks, size}, ranks_that_split(kind, size, ranks), counts);
  }
  return row;
}

/// Formats the values of all node sizes up to the number of ranks, with "-" for sizes without a count, or a single
/// value if they are equal.
template <class Value>
std::string cell(const ScaleRow& row, const Value& value) {
  std::vector<std::string> texts, every;
  for (const std::size_t size : node_sizes) {
    if (size > row.ranks) continue;
    const auto found = row.counts.find(size);
    every.push_back(found == row.counts.end() ? "-" : value(found->second));
    if (found != row.counts.end()) texts.push_back(every.back());
  }
  const bool all_equal = std::ranges::all_of(texts, [&](const std::string& text) { return text == texts.front(); });
  return all_equal ? texts.front() : fmt::format("{}", fmt::join(every, ", "));
}

void print_row(const ScaleRow& row) {
  const auto whole = [&](auto number) {
    return cell(row, [&](const Count& count) { return fmt::format("{}", number(count)); });
  };
  const auto multiple = [&](auto bytes, std::size_t unit, int digits) {
    return cell(row, [&](const Count& count) {
      return fmt::format("{:.{}f}", static_cast<double>(bytes(count)) / static_cast<double>(unit), digits);
    });
  };
  const std::string size =
      row.bytes < mib ? fmt::format("{} KiB", row.bytes >> 10) : fmt::format("{} MiB", row.bytes / mib);
  print(fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", row.name, size, row.ranks,
                    whole([](const Count& one) { return one.rank.messages; }),
                    whole([](const Count& one) { return one.rank.rounds; }),
                    multiple([](const Count& one) { return one.rank.bytes; }, row.bytes, 2),
                    multiple([](const Count& one) { return one.node_sent; }, row.bytes, 2),
                    multiple([](const Count& one) { return one.node_received; }, row.bytes, 2),
                    multiple([](const Count& one) { return one.rank.memory; }, mib, 1)));
}

void print_table(const std::vector<ScaleRow>& rows) {
  print(
      "| operation or mode | array or model | ranks | messages per rank | rounds | sent by a rank | sent by a node | "
      "received by a node | memory, MiB |\n|---|---|---|---|---|---|---|---|---|\n");
  for (const ScaleRow& row : rows) print_row(row);
}

nlohmann::ordered_json to_json(const std::vector<ScaleRow>& rows) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const ScaleRow& row : rows) {
    for (const auto& [size, count] : row.counts) {
      list.push_back({{"name", row.name},
                      {"bytes", row.bytes},
                      {"ranks", row.ranks},
                      {"ranks_of_node", size},
                      {"messages", count.rank.messages},
                      {"rounds", count.rank.rounds},
                      {"sent", count.rank.bytes},
                      {"node_sent", count.node_sent},
                      {"node_received", count.node_received},
                      {"memory", count.rank.memory}});
    }
  }
  return list;
}

void run(int argc, char** argv) {
  const Options options(argc, argv, {"ranks", "mib"});
  std::vector<std::size_t> numbers;
  for (std::size_t ranks = 1; ranks <= 16384; ranks *= 2) numbers.push_back(ranks);
  numbers = options.counts("ranks", numbers);
  const std::size_t long_bytes = options.count("mib", 64) * mib;
  // The last slices of a unit may reach beyond its elements.
  const std::size_t most = *std::ranges::max_element(numbers);
  CallCounts counts(std::max(long_bytes, shard_size(long_bytes / sizeof(float), most) * most * sizeof(float)));
  std::vector<ScaleRow> rows;
  for (const OperationCase& operation : operations) {
    for (const std::size_t ranks : numbers) rows.push_back(count_operation(operation, ranks, long_bytes, counts));
  }
  const ParameterTable model = model_of(long_bytes);
  for (const parallel::StrategyDescription& strategy : parallel::every_strategy()) {
    for (const std::size_t ranks : numbers) rows.push_back(count_strategy(strategy.kind, ranks, model, counts));
  }
  std::erase_if(rows, [](const ScaleRow& row) { return row.counts.empty(); });
  if (options.json()) return print(to_json(rows).dump(1) + "\n");
  print_table(rows);
}

}  // namespace
}  // namespace mylos::bench

int main(int argc, char** argv) {
  return mylos::bench::run_program("bench_scale", [&] { mylos::bench::run(argc, argv); });
}
