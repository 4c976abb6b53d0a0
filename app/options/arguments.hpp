#pragma once

#include "core/base/option.hpp"
#include "tasks/task_kinds.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// The arguments of a command: the configuration of a run, and one struct for each command with the options that only
/// it reads.
namespace mylos::app {

/// Options that only train reads. compare passes them on to the runs that it starts.
struct TrainArguments {
  std::filesystem::path config;  ///< a saved run.json
  std::string recipe;            ///< name in app/options/recipes.cpp; empty: none
  std::string resume = "auto";   ///< "auto", "never" or a path
  bool extend = false;           ///< continue a finished run with a longer schedule
  bool dry_run = false;
  bool profile = false;
  bool verbose = false;               ///< every rank logs, not only the first
  std::optional<double> stop_before;  ///< seconds before the time limit at which the run ends
  std::optional<double> walltime;     ///< time limit in seconds from the start of the program
  std::string communicator = "auto";  ///< "auto", "mpi" or "nccl"
  std::filesystem::path trace;        ///< output file for the first trace events of a run
  std::filesystem::path gpu_log;      ///< output file for GPUs' values, as nvidia-smi writes them
  std::string save_strategy;          ///< Trainer's checkpoint strategy; empty if not given
};

/// A number of ranks that compare starts.
struct ComparedRanks {
  std::size_t count = 1;
  std::size_t nodes = 0;  ///< on so many nodes, with the same number each; 0: where the launcher puts them

  /// Returns it as in --ranks: 4 or 2x2.
  std::string name() const {
    const std::string each = std::to_string(count / (nodes > 0 ? nodes : 1));
    return nodes > 0 ? std::to_string(nodes) + "x" + each : each;
  }
};

/// Options that only compare reads.
struct CompareArguments {
  /// Command that starts a program on {n} ranks, or on {nodes} nodes with {ranks_per_node} each.
  std::string launcher = "mpirun -n {n}";
  std::vector<ComparedRanks> ranks = {{1}, {2}, {4}};
  std::optional<double> baseline_seconds;  ///< another program's total time on one GPU
};

/// Options that only ask reads.
struct AskArguments {
  std::filesystem::path context;  ///< text that ask answers questions about
};

/// Options of tokenize. bench tokenize reads the vocabulary and `cased`, too.
struct TokenizeArguments {
  std::filesystem::path vocabulary;  ///< vocab.txt
  bool cased = false;
  bool offsets = false;
  bool decode = false;  ///< ids to text
};

/// Options that only bench reads.
struct BenchArguments {
  std::string shapes;                  ///< gemm: a model known by its sizes; empty: the task's first one
  std::size_t tokens = 3072;           ///< gemm: rows of the products
  bool breakdown = false;              ///< step: break the time down by kernel
  bool predicts = false;               ///< batch: --plan, predict without running
  std::vector<std::string> providers;  ///< empty: all of this build
};

/// Options of plan. bench batch reads those of the machine, too.
struct PlanArguments {
  bool every_mode = false;  ///< --mode all
  std::string gpu;          ///< a GPU kind of train/planning/machine.hpp, or "cpu"
  std::size_t gpus = 1;     ///< on all nodes together
  std::size_t nodes = 1;
  std::optional<std::size_t> threads;  ///< per rank; default: the number that this process would use
  std::optional<double> memory;        ///< GiB per GPU, or per rank on CPUs
  double network = 25.0;               ///< GB/s per node in each direction
  std::optional<double> link;          ///< GB/s of collectives within a node
  double storage = 1.0;                ///< GB/s for writing checkpoints
  std::filesystem::path measured;      ///< output of bench step --json; empty: use the cache
  std::string job;                     ///< "slurm" or "pbs": print a job script
};

/// Options that only watch reads.
struct WatchArguments {
  bool once = false;     ///< print once and exit
  double refresh = 2.0;  ///< seconds between updates
};

/// Options that only report reads.
struct ReportArguments {
  std::filesystem::path kernels;                               ///< output of bench step --breakdown --json
  std::filesystem::path batches;                               ///< output of bench batch --json
  std::optional<std::pair<std::size_t, std::size_t>> between;  ///< steps of the two evaluations to compare
};

/// An option as typed on the command line.
struct TypedOption {
  std::string name;                ///< name in the option table: "learning-rate"
  std::vector<std::string> words;  ///< {"--lr", "1e-3"}
};

struct Arguments {
  // The model, data and settings of a run, which several commands read.
  const tasks::TaskKind* task = &tasks::default_task_kind();  ///< defines the options and data of the run
  tasks::RunConfig run = tasks::default_run(*task, {});
  std::string model;           ///< as typed; commands resolve it to a directory
  std::filesystem::path data;  ///< input of eval, prepare, bench and plan
  std::optional<std::size_t> batch_per_rank;
  /// Sequences per micro-batch; the batch per rank is this times --gradient-accumulation-steps.
  std::optional<std::size_t> batch_size_per_device;
  bool batch_is_per_rank = false;  ///< after resolve(): whether the batch counts samples per rank and step

  // Other options of several commands.
  bool overwrite = false;
  bool json = false;
  double collective_timeout = 600.0;  ///< train, bench, doctor: seconds that a rank waits for others
  std::size_t repeats = 5;            ///< bench, compare: timings per measurement, whose median is reported
  std::vector<std::string> modes = {"replicated", "sharded-optimizer", "sharded-gradients",
                                    "sharded"};  ///< compare; bench batch has its own default

  // Options of one command.
  TrainArguments train;
  CompareArguments compare;
  AskArguments ask;
  TokenizeArguments tokenize;
  BenchArguments bench;
  PlanArguments plan;
  WatchArguments watch;
  ReportArguments report;

  // The command line itself.
  bool help = false;
  std::vector<std::string> positional;
  std::vector<std::string> remarks;  ///< one line for each accepted option that has no effect
  std::vector<TypedOption> typed;    ///< options as typed, in order; without peer options that have no effect
  OptionSources sources;
};

}  // namespace mylos::app
