#include "app/options/options.hpp"

#include "train/planning/machine.hpp"

/// Options of plan and of bench batch --plan: the machine to plan for.
namespace mylos::app {
namespace {

constexpr std::string_view machine = "Machine";
constexpr unsigned planning = plan_command | bench_command;  // bench batch --plan

Option gpu_option() {
  std::vector<Choice> kinds = {{"cpu", {}}};
  for (const train::Machine& kind : train::gpu_kinds()) kinds.push_back({kind.name, kind.aliases});
  return choice_option(
      named("gpu", {}, "KIND", machine, planning,
            "what computes: " + describe(kinds) +
                "; cpu: ranks on CPUs like the one here; bench batch --plan needs it too"),
      kinds, [](auto& a) -> auto& { return a.plan.gpu; });
}

}  // namespace

std::vector<Option> plan_options() {
  const CountRange many{1, 1'000'000};
  const RealRange rate{0, 1e6, true};
  return {
      gpu_option(),
      count_option(
          named("gpus", {}, "N", machine, planning, "GPUs of all nodes together, each with a rank; of cpu ranks"), many,
          [](auto& a) -> auto& { return a.plan.gpus; }),
      count_option(
          named("nodes", {}, "N", machine, planning, "nodes, with equally many GPUs each"), many,
          [](auto& a) -> auto& { return a.plan.nodes; }),
      count_option(
          named(
              "threads", {}, "N", machine, planning,
              "of a rank, for --gpu cpu and --job; default: OMP_NUM_THREADS, or a node's processors divided among its "
              "ranks; beside a GPU 8"),
          {1, 4096}, [](auto& a) -> auto& { return a.plan.threads; }),
      real_option(
          named("memory", {}, "X", machine, planning,
                "GiB of a GPU, or of a rank on CPUs; default: the kind's, or "
                "what is free here for each rank of a node; bench batch takes no more, without --plan either"),
          rate, [](auto& a) -> auto& { return a.plan.memory; }),
      real_option(
          named("network-bandwidth", {}, "X", machine, planning, "GB/s of a node in each direction"), rate,
          [](auto& a) -> auto& { return a.plan.network; }),
      real_option(
          named("link-bandwidth", {}, "X", machine, planning,
                "GB/s that a rank moves in exchanges inside a node; default: NVLink's of the kind, of cpu 3"),
          rate, [](auto& a) -> auto& { return a.plan.link; }),
      real_option(
          named("storage-bandwidth", {}, "X", machine, plan_command, "GB/s that checkpoints are written with"), rate,
          [](auto& a) -> auto& { return a.plan.storage; }),
      unrecorded(path_option(
          named("bench", {}, "FILE", machine, planning,
                "what `mylos bench step --json` printed on that machine, in place of what its last runs here left in "
                "the cache"),
          [](auto& a) -> auto& { return a.plan.measured; })),
      choice_option(
          named("job", {}, "SCHEDULER", machine, plan_command,
                "slurm or pbs: print a job script for the recommended run, and nothing else"),
          {{"slurm", {}}, {"pbs", {}}}, [](auto& a) -> auto& { return a.plan.job; }),
  };
}

}  // namespace mylos::app
