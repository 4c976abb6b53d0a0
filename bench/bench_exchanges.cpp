#include "bench/bench_program.hpp"
#include "core/base/error.hpp"
#include "core/base/stopwatch.hpp"
#include "core/base/text/standard_output.hpp"
#include "parallel/communicator/agreement.hpp"
#include "parallel/communicator/mpi/mpi_check.hpp"
#include "parallel/communicator/mpi/mpi_communicator.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

/// Runs the exchanges of a training step of BERT-base over the ranks that mpirun has started, by Mylos or by the MPI
/// library's own collectives. lab/exchanges starts it, counts the messages, and says what is measured.
///
///     bench_exchanges --operation NAME [--by NAME,...] [--type float|bfloat16] [--order nodes|ranks]
///                     [--of-node RANKS] [--divisor N] [--rounds N | --step none | --property NAME]
///
/// --by: ours, blocking, nonblocking. --of-node: consecutive ranks on a node, which MPI must see too. --divisor:
/// divides the sizes of the units. --rounds: times so many steps, in which the ways of --by take turns. --step none:
/// leaves out the step, so that only the start and the end of a run are counted. --property: measures one property of
/// the sums.
namespace mylos::bench {
namespace {

using parallel::Buffer;
using parallel::ElementType;
using parallel::MemoryKind;

struct Unit {
  std::size_t elements, times;
};
/// The embeddings, the layers, and the head of two outputs.
constexpr Unit units[] = {{23'837'184, 1}, {7'087'872, 12}, {1'538, 1}};

/// Adds bfloat16 values as MPI asks for it: each partial sum is rounded.
void add_bfloat16(void* from, void* to, int* count, MPI_Datatype*) {
  const auto* const more = static_cast<const bfloat16*>(from);
  auto* const sums = static_cast<bfloat16*>(to);
  for (int i = 0; i < *count; ++i) sums[i] = bfloat16(static_cast<float>(sums[i]) + static_cast<float>(more[i]));
}

/// All ranks, on nodes of `of_node` consecutive ones.
class Ranks {
 public:
  Ranks(std::size_t of_node, parallel::SumOrder order) : group_(parallel::make_mpi_group(MPI_COMM_WORLD)) {
    MYLOS_CHECK_MPI(MPI_Op_create(&add_bfloat16, 1, &add_bfloat16_));
    MPI_Comm node = MPI_COMM_NULL;
    MYLOS_CHECK_MPI(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
    const parallel::MpiGroup on_node = parallel::make_mpi_group(node);
    ensure(on_node.size == of_node, fmt::format("MPI sees {} ranks on a node, not {}", on_node.size, of_node));
    std::vector<std::size_t> nodes(group_.size);
    for (std::size_t rank = 0; rank < nodes.size(); ++rank) nodes[rank] = rank / of_node;
    ours_ = parallel::make_mpi_communicator(context_, group_, 1, nodes);
    ours_->set_order(order);
    MYLOS_CHECK_MPI(MPI_Comm_free(&node));
  }
  ~Ranks() {
    if (!abandoned_) context_.thread.finish();
    MPI_Op_free(&add_bfloat16_);
  }
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  parallel::Communicator& ours() { return *ours_; }
  /// Gives up the exchanges under way; afterwards Mylos exchanges nothing.
  void abandon() {
    abandoned_ = true;
    context_.thread.abandon();
  }
  std::size_t rank() const { return group_.rank; }
  std::size_t size() const { return group_.size; }
  MPI_Op sum_of(ElementType type) const { return type == ElementType::float32 ? MPI_SUM : add_bfloat16_; }

 private:
  parallel::MpiContext context_;
  parallel::MpiGroup group_;
  MPI_Op add_bfloat16_ = MPI_OP_NULL;
  bool abandoned_ = false;
  std::unique_ptr<parallel::Communicator> ours_;
};

/// An exchange that has begun.
struct Pending {
  parallel::Event event;
  MPI_Request request = MPI_REQUEST_NULL;

  void wait() {
    event.wait(ExecutionSpace());
    MYLOS_CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
  }
};

/// An MPI type and the number of array elements that one of it holds.
struct Kind {
  MPI_Datatype type;
  std::size_t elements = 1;
};

/// An operation on one array, in each of the ways.
class Exchange {
 public:
  Exchange(Ranks& ranks, std::string operation, ElementType type, std::size_t elements, Kind kind)
      : ranks_(ranks),
        operation_(std::move(operation)),
        type_(type),
        kind_(kind),
        part_((elements + ranks.size() - 1) / ranks.size()),
        all_(part_ * ranks.size() * bytes_of(type)),
        received_(all_.size()) {}
  Exchange(Ranks& ranks, std::string operation, ElementType type, std::size_t elements)
      : Exchange(ranks, std::move(operation), type, elements,
                 {type == ElementType::float32 ? MPI_FLOAT : MPI_UINT16_T}) {}

  std::byte* data() { return all_.data(); }
  /// Where the sums of an all-reduce are: Mylos sums in place, and Open MPI's module `han` cannot.
  std::byte* sums(const std::string& way) { return way == "ours" ? all_.data() : received_.data(); }
  std::size_t count() const { return part_ * ranks_.size(); }

  void run(const std::string& way) {
    if (way == "blocking") return MYLOS_CHECK_MPI(blocking());
    begin(way).wait();
  }

  /// `way` is not blocking.
  Pending begin(const std::string& way) {
    Pending pending;
    if (way == "ours") {
      pending.event = ours();
    } else {
      MYLOS_CHECK_MPI(nonblocking(&pending.request));
    }
    return pending;
  }

 private:
  parallel::Event ours() {
    const ExecutionSpace space;
    parallel::Communicator& ranks = ranks_.ours();
    const Buffer all{data(), count(), type_, MemoryKind::host};
    const Buffer mine{data() + ranks_.rank() * part_ * bytes_of(type_), part_, type_, MemoryKind::host};
    if (operation_ == "all-reduce") return ranks.all_reduce(space, all, "bench");
    if (operation_ == "reduce-scatter") return ranks.reduce_scatter(space, all, mine, "bench");
    if (operation_ == "all-gather") return ranks.all_gather(space, mine, all, "bench");
    if (operation_ == "broadcast") return ranks.broadcast(space, all, 0, "bench");
    ranks.barrier("bench");
    return {};
  }

  int nonblocking(MPI_Request* request) {
    const MPI_Op sum = ranks_.sum_of(type_);
    const int all = in_mpi(count()), part = in_mpi(part_);
    if (operation_ == "all-reduce")
      return MPI_Iallreduce(data(), received_.data(), all, kind_.type, sum, world, request);
    if (operation_ == "reduce-scatter") {
      return MPI_Ireduce_scatter_block(data(), received_.data(), part, kind_.type, sum, world, request);
    }
    if (operation_ == "all-gather") {
      return MPI_Iallgather(in_place, 0, kind_.type, data(), part, kind_.type, world, request);
    }
    if (operation_ == "broadcast") return MPI_Ibcast(data(), all, kind_.type, 0, world, request);
    return MPI_Ibarrier(world, request);
  }

  int blocking() {
    const MPI_Op sum = ranks_.sum_of(type_);
    const int all = in_mpi(count()), part = in_mpi(part_);
    if (operation_ == "all-reduce") return MPI_Allreduce(data(), received_.data(), all, kind_.type, sum, world);
    if (operation_ == "reduce-scatter") {
      return MPI_Reduce_scatter_block(data(), received_.data(), part, kind_.type, sum, world);
    }
    if (operation_ == "all-gather") return MPI_Allgather(in_place, 0, kind_.type, data(), part, kind_.type, world);
    if (operation_ == "broadcast") return MPI_Bcast(data(), all, kind_.type, 0, world);
    return MPI_Barrier(world);
  }

  inline static void* const in_place = MPI_IN_PLACE;
  inline static MPI_Comm const world = MPI_COMM_WORLD;
  int in_mpi(std::size_t elements) const { return static_cast<int>(elements / kind_.elements); }

  Ranks& ranks_;
  std::string operation_;
  ElementType type_;
  Kind kind_;
  std::size_t part_;
  std::vector<std::byte> all_, received_;  ///< received: from the library's sums
};

/// Returns the seconds of an exchange on the slowest rank.
double seconds_of(Exchange& exchange, const std::string& way) {
  MYLOS_CHECK_MPI(MPI_Barrier(MPI_COMM_WORLD));
  const Stopwatch watch;
  exchange.run(way);
  double seconds = watch.seconds();
  MYLOS_CHECK_MPI(MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD));
  return seconds;
}

struct Case {
  std::string operation;
  std::vector<std::string> ways;
  ElementType type;
  std::size_t divisor;
};

/// Runs the exchanges of a step. A barrier has no array and runs once.
template <class Run>
void run_step(Ranks& ranks, const Case& chosen, const Run& run) {
  for (const Unit& unit : units) {
    Exchange exchange(ranks, chosen.operation, chosen.type, std::max<std::size_t>(unit.elements / chosen.divisor, 1));
    for (std::size_t i = 0; i < unit.times; ++i) run(exchange);
    if (chosen.operation == "barrier") return;
  }
}

/// Runs a short exchange, after which the library has made what it makes at its first call; then the step, if asked.
/// Returns the bytes that Mylos counts between nodes.
nlohmann::ordered_json count(Ranks& ranks, const Case& chosen, bool runs_step) {
  Exchange(ranks, chosen.operation, chosen.type, units[2].elements).run(chosen.ways[0]);
  const parallel::Traffic before = parallel::traffic();
  if (runs_step) run_step(ranks, chosen, [&](Exchange& exchange) { exchange.run(chosen.ways[0]); });
  const parallel::Traffic sent = parallel::traffic() - before;
  std::uint64_t sums[] = {sent.network_bytes, sent.messages};
  MYLOS_CHECK_MPI(MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD));
  return {{"network_bytes", sums[0]}, {"messages", sums[1]}};
}

/// Returns the seconds of a step in each way and round.
nlohmann::ordered_json times(Ranks& ranks, const Case& chosen, std::size_t rounds) {
  nlohmann::ordered_json seconds;
  for (const std::string& way : chosen.ways) {
    Exchange(ranks, chosen.operation, chosen.type, units[2].elements).run(way);
    seconds[way] = std::vector<double>(rounds);
  }
  for (std::size_t round = 0; round < rounds; ++round) {
    run_step(ranks, chosen, [&](Exchange& exchange) {
      for (const std::string& way : chosen.ways) {
        seconds[way][round] = seconds[way][round].get<double>() + seconds_of(exchange, way);
      }
    });
  }
  return seconds;
}

/// Whether a property holds in one way, and the observation that shows it.
struct Finding {
  bool holds = false;
  std::string shown;
};

constexpr std::chrono::milliseconds late{500};  ///< how long the other ranks stay away

/// 256 + 1 + 1 + ... in bfloat16, whose values above 256 are the even numbers.
Finding sums_in_float(Ranks& ranks, const std::string& operation, const std::string& way) {
  Exchange exchange(ranks, operation, ElementType::bfloat16, 100'000);
  auto* const values = reinterpret_cast<bfloat16*>(exchange.data());
  std::fill_n(values, exchange.count(), bfloat16(ranks.rank() == 0 ? 256.0f : 1.0f));
  exchange.run(way);
  const auto sum = static_cast<float>(*reinterpret_cast<bfloat16*>(exchange.sums(way)));
  const auto rounded = static_cast<float>(bfloat16(255.0f + static_cast<float>(ranks.size())));
  return {sum == rounded, fmt::format("256 and {} ones make {}", ranks.size() - 1, sum)};
}

/// Compares sums with those in the order of Communicator.
Finding has_fixed_order(Ranks& ranks, const std::string& operation, const std::string& way) {
  Exchange exchange(ranks, operation, ElementType::float32, units[1].elements), expected = exchange;
  for (Exchange* const each : {&exchange, &expected}) {
    auto* const values = reinterpret_cast<float*>(each->data());
    for (std::size_t i = 0; i < each->count(); ++i)
      values[i] = 1.0f / static_cast<float>(i % 1013 + 7 * ranks.rank() + 3);
  }
  exchange.run(way);
  expected.run("ours");
  std::size_t other = 0;
  for (std::size_t i = 0; i < exchange.count() * sizeof(float); ++i)
    other += exchange.sums(way)[i] != expected.data()[i];
  return {other == 0, fmt::format("{} of {} bytes differ from the tree's", other, exchange.count() * sizeof(float))};
}

/// Exchanges pairs of values, as a count above 2^31 needs, because MPI 3.1 counts in int.
Finding takes_long_counts(Ranks& ranks, const std::string& operation, const std::string& way) {
  if (way == "ours") return {sizeof(Buffer::count) == 8, fmt::format("counts of {} bits", 8 * sizeof(Buffer::count))};
  MPI_Datatype pair = MPI_DATATYPE_NULL;
  MYLOS_CHECK_MPI(MPI_Type_contiguous(2, MPI_FLOAT, &pair));
  MYLOS_CHECK_MPI(MPI_Type_commit(&pair));
  Exchange exchange(ranks, operation, ElementType::float32, 1'000, {pair, 2});
  Finding finding{true, "a type of two floats"};
  try {
    exchange.run(way);
  } catch (const std::exception& error) {
    finding = {false, fmt::format("a type of two floats: {}", error.what())};
  }
  MYLOS_CHECK_MPI(MPI_Type_free(&pair));
  return finding;
}

/// Times the wait for an exchange after a computation three times as long as the exchange. `has_thread`: a thread of
/// its own waits for the exchange meanwhile. Returns the share of the exchange that the computation hides.
double hidden_share(Exchange& exchange, const std::string& way, bool has_thread) {
  exchange.run(way);
  double alone = seconds_of(exchange, way);
  for (int i = 0; i < 4; ++i) alone = std::min(alone, seconds_of(exchange, way));
  std::vector<double> waits;
  for (int i = 0; i < 5; ++i) {
    MYLOS_CHECK_MPI(MPI_Barrier(MPI_COMM_WORLD));
    std::thread thread;
    if (has_thread) thread = std::thread([&] { exchange.run(way); });
    Pending pending = has_thread ? Pending() : exchange.begin(way);
    const Stopwatch computing;
    while (computing.seconds() < 3 * alone) continue;
    const Stopwatch waiting;
    pending.wait();
    if (has_thread) thread.join();
    waits.push_back(waiting.seconds());
  }
  return 1 - std::min(1.0, median(waits) / alone);
}

Finding progresses(Ranks& ranks, const std::string& operation, const std::string& way) {
  Exchange exchange(ranks, operation, ElementType::float32, 16'000'000);
  if (way == "blocking") {
    const double hidden = hidden_share(exchange, way, true);
    return {hidden > 0.5, fmt::format("{:.0f} % in a thread of its own", 100 * hidden)};
  }
  const double hidden = hidden_share(exchange, way, false);
  if (way == "ours") return {hidden > 0.5, fmt::format("{:.0f} %", 100 * hidden)};
  const double in_thread = hidden_share(exchange, way, true);
  return {in_thread > 0.5,
          fmt::format("{:.0f} %, and {:.0f} % if a thread waits for it", 100 * hidden, 100 * in_thread)};
}

/// Begins an exchange that the other ranks join late, and finds out when the caller can look at its watch.
Finding lets_go(Ranks& ranks, const std::string& operation, const std::string& way) {
  Exchange exchange(ranks, operation, ElementType::float32, 1'000'000);
  MYLOS_CHECK_MPI(MPI_Barrier(MPI_COMM_WORLD));
  if (ranks.rank() != 0) std::this_thread::sleep_for(late);
  const Stopwatch watch;
  Pending pending;
  if (way == "blocking") {
    exchange.run(way);
  } else {
    pending = exchange.begin(way);
  }
  const double seconds = watch.seconds();
  pending.wait();
  return {seconds < 0.25,
          fmt::format("with the others {} ms late, the call returns after {:.0f} ms", late.count(), 1e3 * seconds)};
}

/// Begins an exchange that no other rank joins, and gives it up.
Finding cancels(Ranks& ranks, const std::string& operation, const std::string& way) {
  Exchange exchange(ranks, operation, ElementType::float32, 1'000'000);
  if (way == "blocking") return {false, "the call does not return"};
  const bool is_first = ranks.rank() == 0;
  const Stopwatch watch;
  if (way == "ours") {
    if (is_first) {
      std::thread waiting([&] {
        try {
          exchange.run(way);
        } catch (const std::exception&) {  // it has been given up
        }
      });
      std::this_thread::sleep_for(late / 10);
      ranks.abandon();
      waiting.join();
    }
    const double seconds = watch.seconds();
    MYLOS_CHECK_MPI(MPI_Barrier(MPI_COMM_WORLD));
    return {seconds < 0.5, fmt::format("it ends after {:.0f} ms", 1e3 * seconds)};
  }
  if (!is_first) std::this_thread::sleep_for(4 * late);
  Pending pending = exchange.begin(way);
  int has_ended = 0;
  const bool cancelled = is_first && MPI_Cancel(&pending.request) == MPI_SUCCESS;
  while (is_first && has_ended == 0 && watch.seconds() < 2e-3 * static_cast<double>(late.count())) {
    MYLOS_CHECK_MPI(MPI_Test(&pending.request, &has_ended, MPI_STATUS_IGNORE));
  }
  pending.wait();
  return {has_ended != 0,
          fmt::format("MPI_Cancel {}, and the exchange {} within {} ms", cancelled ? "succeeds" : "fails",
                      has_ended != 0 ? "ends" : "does not end", 2 * late.count())};
}

nlohmann::ordered_json measured(Ranks& ranks, const std::string& property, const Case& chosen) {
  const std::pair<const char*, Finding (*)(Ranks&, const std::string&, const std::string&)> properties[] = {
      {"float-sums", sums_in_float}, {"order", has_fixed_order}, {"counts", takes_long_counts},
      {"progress", progresses},      {"limit", lets_go},         {"cancel", cancels}};
  const auto found = std::ranges::find(properties, property, [](const auto& each) { return each.first; });
  ensure(found != std::end(properties), fmt::format("there is no property {}", property));
  nlohmann::ordered_json findings;
  for (const std::string& way : chosen.ways) {
    const Finding finding = found->second(ranks, chosen.operation, way);
    findings[way] = {{"holds", finding.holds}, {"shown", finding.shown}};
  }
  return findings;
}

void run(int argc, char** argv) {
  const Options options(argc, argv,
                        {"operation", "by", "type", "order", "of-node", "divisor", "rounds", "step", "property"});
  const std::vector<std::string> operations{"all-reduce", "reduce-scatter", "all-gather", "broadcast", "barrier"};
  const Case chosen{options.names("operation", operations).front(),
                    options.names("by", {"nonblocking", "blocking", "ours"}),
                    options.text("type", "float") == "float" ? ElementType::float32 : ElementType::bfloat16,
                    options.count("divisor", 1)};
  Ranks ranks(options.count("of-node", 2),
              options.text("order", "nodes") == "nodes" ? parallel::SumOrder::nodes : parallel::SumOrder::ranks);
  nlohmann::ordered_json found;
  if (options.has("property")) {
    found = measured(ranks, options.text("property", ""), chosen);
  } else if (options.has("rounds")) {
    found = times(ranks, chosen, options.count("rounds", 1));
  } else {
    found = count(ranks, chosen, options.text("step", "") != "none");
  }
  if (ranks.rank() == 0) print(found.dump() + "\n");
}

}  // namespace
}  // namespace mylos::bench

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);
  Kokkos::InitializationSettings settings;
  settings.set_disable_warnings(true);
  int code = 1;
  {
    const Kokkos::ScopeGuard kokkos(settings);
    code = mylos::bench::run_program("bench_exchanges", [&] { mylos::bench::run(argc, argv); });
  }
  MPI_Finalize();
  return code;
}
