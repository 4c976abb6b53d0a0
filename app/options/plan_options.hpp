#pragma once

#include "app/options/options.hpp"

#include "train/planning/machine.hpp"

/// Options of plan and of bench batch --plan: the machine to plan for.
namespace mylos::app {

/// Options of plan. bench batch reads those of the machine, too.
struct PlanArguments {
  bool every_strategy = false;  ///< --mode all
  std::string gpu;              ///< a GPU kind of train/planning/machine.hpp, or "cpu"
  std::size_t gpus = 1;         ///< on all nodes together
  std::size_t nodes = 1;
  std::optional<std::size_t> threads;  ///< per rank; default: the number that this process would use
  std::optional<double> memory;        ///< GiB per GPU, or per rank on CPUs
  double network = 25.0;               ///< GB/s per node in each direction
  std::optional<double> link;          ///< GB/s of collectives within a node
  double storage = 1.0;                ///< GB/s for writing checkpoints
  std::filesystem::path measured;      ///< output of bench step --json; empty: use the cache
  std::string job;                     ///< "slurm" or "pbs": print a job script
};

inline std::vector<Option> plan_options() {
  constexpr std::string_view machine = "Machine";
  constexpr std::string_view planning = "plan bench/batch/plan", jobs = "plan bench/batch/plan sweep";
  std::vector<Choice> kinds = {{"cpu", {}}};
  for (const train::Machine& kind : train::gpu_kinds()) kinds.push_back({kind.name, kind.aliases});
  const std::string device = "device to plan for: " + describe(kinds) + "; cpu: CPUs like those of this machine";
  const CountRange many{1, 1'000'000};
  const RealRange rate{0, 1e6, true};
  const std::string memory =
      "memory of a GPU, or of a rank on CPUs, in GiB; default: that of the kind, or with --gpu cpu the memory that is "
      "free here, divided among the ranks of a node";
  const std::string threads =
      "default: 8 beside a GPU; on CPUs OMP_NUM_THREADS, else the processors of a node divided among its ranks";
  return {
      choice_option(
          with_help(named("gpu", "KIND", machine, planning, device), {{"bench", "with batch --plan: " + device}}),
          kinds, MYLOS_FIELD(plan->gpu)),
      count_option(
          with_help(
              named("gpus", "N", machine, jobs,
                    "number of GPUs on all nodes together, with one rank each; with --gpu cpu: number of ranks"),
              {{"sweep", "number of ranks of a run on all nodes together, each with a GPU if this build uses them"}}),
          many, MYLOS_FIELD(plan->gpus)),
      count_option(named("nodes", "N", machine, jobs, "number of nodes, with the same number of GPUs each"), many,
                   MYLOS_FIELD(plan->nodes)),
      count_option(
          with_help(named("threads", "N", machine, jobs, "threads per rank, for --gpu cpu and --job; " + threads),
                    {{"sweep", "threads per rank; " + threads}}),
          {1, 4096}, MYLOS_FIELD(plan->threads)),
      real_option(with_help(named("memory", "X", machine, "plan bench/batch", memory),
                            {{"bench", memory + "; with batch also the limit of measured micro-batches"}}),
                  rate, MYLOS_FIELD(plan->memory)),
      real_option(
          named("network-bandwidth", "X", machine, planning, "network bandwidth of a node in each direction, in GB/s"),
          rate, MYLOS_FIELD(plan->network)),
      real_option(
          named("link-bandwidth", "X", machine, planning,
                "bandwidth of a rank in collectives inside a node, in GB/s; default: NVLink's of the kind; with --gpu "
                "cpu 3"),
          rate, MYLOS_FIELD(plan->link)),
      real_option(
          named("storage-bandwidth", "X", machine, "plan", "bandwidth at which checkpoints are written, in GB/s"), rate,
          MYLOS_FIELD(plan->storage)),
      unrecorded(path_option(
          named("bench", "FILE", machine, planning,
                "output of `mylos bench step --json` on that machine; default: what its last runs on this one left in "
                "the cache"),
          MYLOS_FIELD(plan->measured))),
      choice_option(with_help(named("job", "SCHEDULER", machine, "plan sweep",
                                    "print only a job script for the recommended run: slurm or pbs"),
                              {{"sweep",
                                "scheduler of the job array: slurm or pbs; default: pbs where there is a qsub and no "
                                "sbatch, else slurm"}}),
                    {{"slurm", {}}, {"pbs", {}}}, MYLOS_FIELD(plan->job)),
  };
}

}  // namespace mylos::app
