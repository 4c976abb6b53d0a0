#include "app/bench/bench.hpp"
#include "app/bench/memory_bandwidth.hpp"
#include "app/program/compute.hpp"
#include "app/program/on_ranks.hpp"
#include "core/base/error.hpp"
#include "core/base/median.hpp"
#include "core/base/stopwatch.hpp"
#include "core/base/text/standard_output.hpp"
#include "core/base/usage_error.hpp"
#include "parallel/communicator/agreement.hpp"
#include "parallel/launch/launch.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace mylos::app {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::size_t smallest = std::size_t{4} << 10, largest = std::size_t{64} << 20;

/// An operation over an array of `bytes`: the array that all_reduce sums, reduce_scatter splits, or all_gather fills.
struct Collective {
  const char* name;
  /// Returns the ratio of bus to algorithm bandwidth, as in NCCL's tests: the bytes that each rank must send per byte
  /// of the array. Bus bandwidths are comparable across numbers of ranks.
  double bus_factor(double ranks) const { return passes * (ranks - 1) / ranks; }
  /// Returns the bytes that a rank must read and write per byte of the array if it can read the memory of all ranks. A
  /// sum reads a rank's part of every rank's array and writes it once; a gather reads and writes the parts of the other
  /// ranks.
  double least_memory(double ranks) const {
    const double sum = 1.0 + 1.0 / ranks, gather = 2.0 * (ranks - 1) / ranks;
    return (sums ? sum : 0.0) + (gathers ? gather : 0.0);
  }
  bool sums, gathers;
  double passes;
};

constexpr std::array collectives{Collective{"all-reduce", true, true, 2.0},
                                 Collective{"reduce-scatter", true, false, 1.0},
                                 Collective{"all-gather", false, true, 1.0}};

/// Small whole numbers, whose sums are exact in any order.
float value_of(std::size_t rank, std::size_t i) { return static_cast<float>(i % 61 + rank); }
float sum_of(std::size_t ranks, std::size_t i) {
  const std::size_t sum = ranks * (i % 61) + ranks * (ranks - 1) / 2;
  return static_cast<float>(sum);
}

class CollectiveTimer {
 public:
  CollectiveTimer(parallel::Communicator& ranks, std::size_t bytes)
      : ranks_(ranks),
        part_(std::max<std::size_t>(1, bytes / sizeof(float) / ranks.size())),
        array_(uninitialized<float>("mylos::bench::collective", part_ * ranks.size())) {}

  std::size_t bytes() const { return all().count * sizeof(float); }

  /// Errors: std::runtime_error on all ranks if a value is wrong on any rank.
  void validate(const Collective& collective) {
    const auto host = Kokkos::create_mirror_view(array_);
    for (std::size_t i = 0; i < host.size(); ++i) host(i) = value_of(ranks_.rank(), i);
    Kokkos::deep_copy(array_, host);
    start(collective).wait(space_);
    Kokkos::deep_copy(host, array_);
    parallel::on_every_rank(ranks_, [&] {
      for (std::size_t i = 0; i < host.size(); ++i) check(collective, i, host(i));
    });
  }

  /// Returns the seconds of each of `repeats` timings, on the slowest rank.
  std::vector<double> time(const Collective& collective, std::size_t repeats) {
    std::vector<double> seconds;
    for (std::size_t i = 0; i < bench_warm_ups + repeats; ++i) {
      ranks_.barrier("bench");
      const Stopwatch watch;
      start(collective).wait(space_);
      if (i >= bench_warm_ups) seconds.push_back(watch.seconds());
    }
    const std::vector<double> of_all = parallel::gather(ranks_, seconds);
    for (std::size_t i = 0; i < of_all.size(); ++i) seconds[i % repeats] = std::max(seconds[i % repeats], of_all[i]);
    return seconds;
  }

 private:
  parallel::Buffer all() const {
    return {array_.data(), part_ * ranks_.size(), parallel::ElementType::float32, parallel::MemoryKind::device};
  }

  parallel::Event start(const Collective& collective) {
    const parallel::Buffer mine = parallel::buffer_of(slice(array_, mine_begin(), mine_begin() + part_));
    if (collective.sums && collective.gathers) return ranks_.all_reduce(space_, all(), "bench");
    if (collective.sums) return ranks_.reduce_scatter(space_, all(), mine, "bench");
    return ranks_.all_gather(space_, mine, all(), "bench");
  }

  void check(const Collective& collective, std::size_t i, float value) const {
    const bool is_mine = i >= mine_begin() && i < mine_begin() + part_;
    if (collective.sums && !collective.gathers && !is_mine) return;  // reduce_scatter leaves these values undefined
    const float expected = collective.sums ? sum_of(ranks_.size(), i) : value_of(i / part_, i);
    if (value != expected) {  // formatted only here, because arrays are long
      fail(fmt::format("bench {}: element {} is {}, not {}", collective.name, i, value, expected));
    }
  }

  std::size_t mine_begin() const { return ranks_.rank() * part_; }

  parallel::Communicator& ranks_;
  ExecutionSpace space_;
  std::size_t part_;
  Vector<float> array_;
};

/// Returns the memory bandwidth of this node's ranks together, in bytes per second, measured simultaneously.
double memory_of_node(parallel::Launch& launch, std::size_t repeats) {
  MemoryBandwidth memory;
  std::vector<double> rates;
  for (std::size_t i = 0; i < repeats; ++i) {
    launch.world().barrier("bench");
    rates.push_back(memory.measure());
  }
  const std::vector<double> of_all = parallel::gather(launch.world(), std::vector<double>{median(rates)});
  double sum = 0.0;
  for (std::size_t rank = 0; rank < of_all.size(); ++rank) {
    if (launch.placements()[rank].node == launch.placement().node) sum += of_all[rank];
  }
  return sum;
}

/// A collective over an array of one size, timed.
struct TimedCollective {
  const char* operation;
  std::size_t bytes;
  double seconds;
  double algorithm, bus;                  ///< bandwidths, in bytes per second
  std::optional<double> share_of_memory;  ///< of the node's bandwidth; nullopt between nodes, where the network limits
};

TimedCollective timed_collective(const Collective& collective, parallel::Launch& launch, std::size_t bytes,
                                 double seconds, double memory) {
  const auto ranks = static_cast<double>(launch.world().size()), size = static_cast<double>(bytes);
  TimedCollective timed{.operation = collective.name,
                        .bytes = bytes,
                        .seconds = seconds,
                        .algorithm = size / seconds,
                        .bus = collective.bus_factor(ranks) * size / seconds,
                        .share_of_memory = {}};
  if (launch.nodes() == 1) timed.share_of_memory = ranks * collective.least_memory(ranks) * size / memory / seconds;
  return timed;
}

OrderedJson collective_json(const TimedCollective& timed) {
  OrderedJson row{{"operation", timed.operation},
                  {"bytes", timed.bytes},
                  {"seconds", timed.seconds},
                  {"algorithm_bandwidth", timed.algorithm},
                  {"bus_bandwidth", timed.bus}};
  if (timed.share_of_memory) row["share_of_memory"] = *timed.share_of_memory;
  return row;
}

void print_collective(const TimedCollective& timed) {
  const std::string share = timed.share_of_memory ? fmt::format("{:7.0f} %", 100 * *timed.share_of_memory) : "";
  print(fmt::format("{:15} {:>8} KiB {:10.3f} ms {:9.2f} {:9.2f} GB/s{}\n", timed.operation, timed.bytes >> 10,
                    1e3 * timed.seconds, 1e-9 * timed.algorithm, 1e-9 * timed.bus, share));
}

void print_head(parallel::Launch& launch, double memory, std::size_t repeats) {
  print_bench_context(launch.threads());
  print(fmt::format(
      "collectives: float arrays, {} ranks on {} node{}, {}; median of {}, each timed on its slowest rank\n",
      launch.world().size(), launch.nodes(), launch.nodes() == 1 ? "" : "s", launch.library(), repeats));
  print(fmt::format("memory bandwidth of all ranks of a node: {:.2f} GB/s\n", 1e-9 * memory));
  print(fmt::format("{:15} {:>12} {:>13} {:>9} {:>9}{}\n", "operation", "size", "time", "algorithm", "bus",
                    launch.nodes() == 1 ? "      of memory" : ""));
}

int time_all(parallel::Launch& launch, const Arguments& arguments) {
  parallel::Communicator& ranks = launch.world();
  if (ranks.size() == 1) {
    throw UsageError("bench collectives needs several ranks; start it as mpirun -n 2 mylos bench collectives");
  }
  const ComputeScope compute(launch);
  ranks.set_bucket(arguments.run.engine.parallel.bucket);
  const bool prints = ranks.rank() == 0;
  const double memory = memory_of_node(launch, 3);
  if (prints && !arguments.json) print_head(launch, memory, arguments.repeats);
  std::vector<TimedCollective> timed;
  for (const Collective& collective : collectives) {
    for (std::size_t size = smallest; size <= largest; size *= 4) {
      CollectiveTimer timer(ranks, size);
      timer.validate(collective);
      const double seconds = median(timer.time(collective, arguments.repeats));
      timed.push_back(timed_collective(collective, launch, timer.bytes(), seconds, memory));
      if (prints && !arguments.json) print_collective(timed.back());
    }
  }
  if (prints && arguments.json) {
    OrderedJson rows = OrderedJson::array();
    for (const TimedCollective& each : timed) rows.push_back(collective_json(each));
    print_indented_json({{"context", bench_context(launch.threads())},
                         {"ranks", ranks.size()},
                         {"nodes", launch.nodes()},
                         {"mpi", launch.library()},
                         {"memory_bandwidth", memory},
                         {"collectives", rows}});
  }
  return 0;
}

}  // namespace

int bench_collectives(const Arguments& arguments) {
  parallel::Launch launch{std::chrono::duration<double>(arguments.collective_timeout)};
  return on_ranks(launch, [&] { return time_all(launch, arguments); });
}

}  // namespace mylos::app
