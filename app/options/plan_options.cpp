#include "app/options/options.hpp"

#include "train/planning/machine.hpp"

/// Options of plan and of bench batch --plan: the machine to plan for.
namespace mylos::app {
namespace {

constexpr std::string_view machine = "Machine";
constexpr std::string_view planning = "plan bench/batch/plan", jobs = "plan bench/batch/plan sweep";

Option gpu_option() {
  std::vector<Choice> kinds = {{"cpu", {}}};
  for (const train::Machine& kind : train::gpu_kinds()) kinds.push_back({kind.name, kind.aliases});
  const std::string text = "device to plan for: " + describe(kinds) + "; cpu: CPUs like those of this machine";
  return choice_option(
      with_help(named("gpu", {}, "KIND", machine, planning, text), {{"bench", "with batch --plan: " + text}}), kinds,
      [](auto& a) -> auto& { return a.plan.gpu; });
}

}  // namespace

std::vector<Option> plan_options() {
  const CountRange many{1, 1'000'000};
  const RealRange rate{0, 1e6, true};
  const std::string memory =
      "memory of a GPU, or of a rank on CPUs, in GiB; default: that of the kind, or with --gpu cpu the memory that is "
      "free here, divided among the ranks of a node";
  const std::string threads =
      "default: 8 beside a GPU; on CPUs OMP_NUM_THREADS, else the processors of a node divided among its ranks";
  return {
      gpu_option(),
      count_option(
          with_help(
              named("gpus", {}, "N", machine, jobs,
                    "number of GPUs on all nodes together, with one rank each; with --gpu cpu: number of ranks"),
              {{"sweep", "number of ranks of a run on all nodes together, each with a GPU if this build uses them"}}),
          many, [](auto& a) -> auto& { return a.plan.gpus; }),
      count_option(
          named("nodes", {}, "N", machine, jobs, "number of nodes, with the same number of GPUs each"), many,
          [](auto& a) -> auto& { return a.plan.nodes; }),
      count_option(
          with_help(named("threads", {}, "N", machine, jobs, "threads per rank, for --gpu cpu and --job; " + threads),
                    {{"sweep", "threads per rank; " + threads}}),
          {1, 4096}, [](auto& a) -> auto& { return a.plan.threads; }),
      real_option(
          with_help(named("memory", {}, "X", machine, "plan bench/batch", memory),
                    {{"bench", memory + "; with batch also the limit of measured micro-batches"}}),
          rate, [](auto& a) -> auto& { return a.plan.memory; }),
      real_option(
          named("network-bandwidth", {}, "X", machine, planning,
                "network bandwidth of a node in each direction, in GB/s"),
          rate, [](auto& a) -> auto& { return a.plan.network; }),
      real_option(
          named("link-bandwidth", {}, "X", machine, planning,
                "bandwidth of a rank in collectives inside a node, in GB/s; default: NVLink's of the kind; with --gpu "
                "cpu 3"),
          rate, [](auto& a) -> auto& { return a.plan.link; }),
      real_option(
          named("storage-bandwidth", {}, "X", machine, "plan", "bandwidth at which checkpoints are written, in GB/s"),
          rate, [](auto& a) -> auto& { return a.plan.storage; }),
      unrecorded(path_option(
          named("bench", {}, "FILE", machine, planning,
                "output of `mylos bench step --json` on that machine; default: what its last runs on this one left in "
                "the cache"),
          [](auto& a) -> auto& { return a.plan.measured; })),
      choice_option(
          with_help(named("job", {}, "SCHEDULER", machine, "plan sweep",
                          "print only a job script for the recommended run: slurm or pbs"),
                    {{"sweep",
                      "scheduler of the job array: slurm or pbs; default: pbs where there is a qsub and no "
                      "sbatch, else slurm"}}),
          {{"slurm", {}}, {"pbs", {}}}, [](auto& a) -> auto& { return a.plan.job; }),
  };
}

}  // namespace mylos::app
