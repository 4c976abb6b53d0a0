#include "app/plan/plan_target.hpp"

#include "app/bench/calibration.hpp"
#include "app/options/plan_options.hpp"
#include "app/program/compute.hpp"
#include "app/program/model_argument.hpp"
#include "core/base/error.hpp"
#include "core/base/options/option_values.hpp"
#include "core/base/process/processors.hpp"
#include "core/base/text/standard_output.hpp"
#include "core/base/usage_error.hpp"
#include "parallel/launch/launch.hpp"
#include "train/engine/memory/memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <string>
#include <vector>

namespace mylos::app {
namespace {

using parallel::StrategyKind;

/// Returns whether a device name is of the given kind: "NVIDIA A100-SXM4-80GB" is of kind a100-80.
bool is_of_kind(std::string device, const std::string& kind) {
  std::ranges::transform(device, device.begin(), [](unsigned char letter) { return std::tolower(letter); });
  return std::ranges::all_of(split(kind, '-'),
                             [&](const std::string& part) { return device.find(part) != std::string::npos; });
}

bool is_host(const Arguments& arguments) { return arguments.plan->gpu == "cpu"; }

/// Returns whether a measurement fits the planned machine and precision. One named with --bench may be of another CPU.
bool serves(const Calibration& one, const Arguments& arguments) {
  if (one.precision != arguments.run.engine.precision || one.host != is_host(arguments)) return false;
  if (!one.host) return is_of_kind(one.device, arguments.plan->gpu);
  const bool any_cpu = !arguments.plan->measured.empty();
  return one.threads == planned_threads(arguments) && (any_cpu || one.device == processor_name());
}

/// Returns the fitting measurement of the model that is nearest in size.
std::optional<train::ComputeRate> measured_rate(const Arguments& arguments, const nn::Model& model) {
  const std::filesystem::path& named = arguments.plan->measured;
  std::vector<Calibration> all = named.empty() ? saved_calibrations() : std::vector{read_calibration(named)};
  std::erase_if(all, [&](const Calibration& one) { return !serves(one, arguments); });
  if (all.empty() && named.empty()) return {};
  if (all.empty()) {
    fail(fmt::format("--bench {}: not measured on --gpu {} in {}{}", named.string(), arguments.plan->gpu,
                     to_string(arguments.run.engine.precision),
                     is_host(arguments) ? fmt::format(" with {} threads", planned_threads(arguments)) : ""));
  }
  const ModelSize size = model_size(model);
  const Calibration& best =
      *std::ranges::min_element(all, {}, [&](const Calibration& one) { return distance(one.model, size); });
  return train::ComputeRate{best.flops, best.bandwidth, best.kept_per_flop,
                            fmt::format("measured by bench step on a model of {:.4g} M parameters: {:.4g} TFLOP/s",
                                        1e-6 * static_cast<double>(best.model.parameters), 1e-12 * best.flops)};
}

/// Returns the machine of a rank on CPUs like those of this node.
train::Machine host_machine(const Arguments& arguments, std::size_t ranks_of_node) {
  constexpr double thread_flops = 50e9, node_bandwidth = 20e9;
  const auto threads = static_cast<double>(planned_threads(arguments));
  train::Machine machine{.name = "cpu", .threads = planned_threads(arguments)};
  machine.memory = (train::available_memory() + train::resident_memory()) / ranks_of_node;
  machine.float32 = machine.bfloat16 = machine.half = threads * thread_flops;
  machine.bandwidth = node_bandwidth / static_cast<double>(ranks_of_node);
  machine.link = 3e9;
  machine.copies = true;
  return machine;
}

/// Returns the device memory of NCCL's connections of a rank in one group: `of_collectives`, and those of ordered sums.
///
/// A connection from a GPU of the same node has a buffer for each protocol: 4 MiB (NCCL_BUFFSIZE), 4.7 and 0.5 MiB by
/// default (computeBuffSizes in NCCL's src/init.cc, versions 2.28 to 2.30). CUDA allocates such memory in units of 2
/// MiB: 10 MiB for receiving and 2 MiB for sending, as reported in github.com/NVIDIA/nccl/issues/1685. Ordered sums
/// send and receive, for which NCCL connects each pair of GPUs of a node by several channels: up to 32 if all ranks are
/// on one node, and about 2 otherwise, because all pairs have as many as those that a network connects
/// (ncclTopoComputeP2pChannels in src/graph/paths.cc). Connections between nodes share one buffer in each direction.
std::size_t nccl_bytes_of_group(std::size_t of_collectives, const train::RankCounts& ranks, bool sums_in_order) {
  constexpr std::size_t mebibyte = std::size_t{1} << 20, connection = 12 * mebibyte;
  constexpr std::size_t channels_of_node = 32, channels_of_network = 2, network = 2 * 64 * mebibyte;
  if (ranks.ranks == 1) return 0;
  if (!sums_in_order) return of_collectives;
  const std::size_t peers = ranks.of_node - 1;
  return of_collectives + (ranks.nodes == 1 ? peers * channels_of_node * connection
                                            : peers * channels_of_network * connection + network);
}

/// Returns the assumed rate if there is no measurement.
train::ComputeRate assumed_rate(const Arguments& arguments, const train::Machine& machine) {
  train::ComputeRate rate = train::assumed_rate(machine, arguments.run.engine.precision);
  if (is_host(arguments)) {
    rate.origin = fmt::format("assumed: {:.0f} GFLOP/s per thread; `mylos bench step` measures it",
                              1e-9 * rate.flops / static_cast<double>(planned_threads(arguments)));
  }
  return rate;
}

/// Returns the counts of a group whose ranks are `stride` apart, as in hybrid.
train::RankCounts group_of(const train::RankCounts& ranks, std::size_t size, std::size_t stride) {
  const std::size_t of_node = std::clamp<std::size_t>(ranks.of_node / stride, 1, size);
  return {.ranks = size, .nodes = (size + of_node - 1) / of_node, .of_node = of_node};
}

}  // namespace

std::size_t nccl_bytes(const train::Machine& machine, const train::RankCounts& ranks, std::optional<std::size_t> shards,
                       bool sums_in_order) {
  const auto of_group = [&](const train::RankCounts& group) {
    return nccl_bytes_of_group(machine.connections, group, sums_in_order);
  };
  const std::size_t of_all = of_group(ranks);
  const bool has_groups = shards && *shards > 1 && *shards < ranks.ranks;
  if (!has_groups) return of_all;  // groups of the same ranks share a connection
  return of_all + of_group(group_of(ranks, *shards, 1)) + of_group(group_of(ranks, ranks.ranks / *shards, *shards));
}

std::size_t planned_threads(const Arguments& arguments) {
  constexpr std::size_t of_gpu = 8;  // as requested in jobscripts/; they read and tokenize data
  const PlanArguments& plan = *arguments.plan;
  if (plan.threads) return *plan.threads;
  if (!is_host(arguments)) return of_gpu;
  const bool is_asked_for = threads_from_environment() > 0;
  return is_asked_for ? default_threads() : std::max<std::size_t>(1, default_threads() / (plan.gpus / plan.nodes));
}

tasks::PlannedRun planned_run(const Arguments& arguments) {
  tasks::RunConfig run = arguments.run;
  const train::Machine* const kind = train::find_gpu_kind(arguments.plan->gpu);
  if (kind != nullptr) run.task.planned_device = kind->architecture;
  check_task(FileReader(), arguments, arguments.model);
  tasks::PlannedRun planned = arguments.task->plan(arguments.model, arguments.data, run, arguments.sources, log_line);
  planned.network->freeze(run.engine.freeze);
  return planned;
}

train::PlanTarget make_target(const Arguments& arguments, const nn::Model& model) {
  constexpr double giga = 1e9, gib = 1u << 30;
  const PlanArguments& plan = *arguments.plan;
  if (plan.gpu.empty()) throw UsageError("plan needs --gpu; see mylos plan --help");
  if (plan.gpus % plan.nodes != 0) {
    throw UsageError(fmt::format("--gpus {}: expected a multiple of --nodes {}; --gpus counts the GPUs of all nodes",
                                 plan.gpus, plan.nodes));
  }
  const bool host = is_host(arguments);
  const std::size_t of_node = plan.gpus / plan.nodes;
  train::PlanTarget target;
  target.machine = host ? host_machine(arguments, of_node) : *train::find_gpu_kind(plan.gpu);
  if (plan.memory) target.machine.memory = static_cast<std::size_t>(*plan.memory * gib);
  if (plan.link) target.machine.link = *plan.link * giga;
  const std::optional<train::ComputeRate> measured = measured_rate(arguments, model);
  target.rate = measured ? *measured : assumed_rate(arguments, target.machine);
  target.network.bandwidth = plan.network * giga;
  target.storage = plan.storage * giga;
  target.ranks = {.ranks = plan.gpus,
                  .nodes = plan.nodes,
                  .of_node = of_node,
                  .on_host = host,
                  .threads = target.machine.threads,
                  .architecture = target.machine.architecture};
  const train::ParallelConfig& parallel = arguments.run.engine.parallel;
  if (!host) {
    const bool sums_in_order = parallel.deterministic || parallel.bfloat16_gradients;
    const std::size_t shards = parallel.shard_size > 0 ? std::min(parallel.shard_size, plan.gpus) : of_node;
    target.connections = [ranks = target.ranks, shards, sums_in_order](const train::Machine& machine,
                                                                       StrategyKind strategy) {
      const std::optional<std::size_t> split = strategy == StrategyKind::hybrid ? std::optional(shards) : std::nullopt;
      return nccl_bytes(machine, ranks, split, sums_in_order);
    };
  }
  // Memory of Kokkos, MPI and the GEMM libraries during a run, in addition to that of this process; most is MPI's.
  const std::size_t libraries = parallel::has_mpi() ? std::size_t{12} << 20 : 0;
  target.program = host ? train::resident_memory() + libraries : 0;
  return target;
}

}  // namespace mylos::app
