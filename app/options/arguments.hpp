#pragma once

#include "core/base/option.hpp"
#include "tasks/task_kinds.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// The arguments of a command: the configuration of a run, and options that only commands read.
namespace mylos::app {

/// Options that only plan reads.
struct PlanArguments {
  std::string gpu;       ///< a GPU kind of train/planning/machine.hpp, or "cpu"
  std::size_t gpus = 1;  ///< on all nodes together
  std::size_t nodes = 1;
  std::optional<std::size_t> threads;  ///< per rank; default: the number that this process would use
  std::optional<double> memory;        ///< GiB per GPU, or per rank on CPUs
  double network = 25.0;               ///< GB/s per node in each direction
  std::optional<double> link;          ///< GB/s of collectives within a node
  double storage = 1.0;                ///< GB/s for writing checkpoints
  std::filesystem::path measured;      ///< output of bench step --json; empty: use the cache
  std::string job;                     ///< "slurm" or "pbs": print a job script
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
  const tasks::TaskKind* task = &tasks::default_task_kind();  ///< defines the options and data of the run
  tasks::RunConfig run = tasks::default_run(*task, 0);
  std::string model;                 ///< as typed; commands resolve it to a directory
  std::string save_strategy;         ///< Trainer's checkpoint strategy; empty if not given
  bool bf16 = false, fp16 = false;   ///< Trainer's names for precisions
  bool no_fsdp = false;              ///< another name for --mode replicated
  std::vector<std::string> remarks;  ///< one line for each accepted option that has no effect

  std::filesystem::path data;        ///< input of eval, prepare and bench
  std::filesystem::path context;     ///< text that ask answers questions about
  std::filesystem::path vocabulary;  ///< vocab.txt for tokenize and bench tokenize

  std::optional<std::size_t> batch_per_rank;
  /// Sequences per micro-batch; the batch per rank is this times --gradient-accumulation-steps.
  std::optional<std::size_t> batch_size_per_device;
  bool batch_is_per_rank = false;  ///< after resolve(): whether the batch counts samples per rank and step

  std::filesystem::path config;       ///< a saved run.json
  std::optional<double> stop_before;  ///< seconds before the time limit at which the run ends
  std::optional<double> walltime;     ///< time limit in seconds from the start of the program
  std::filesystem::path trace;        ///< output file for the first trace events of a run
  double collective_timeout = 600.0;  ///< seconds that a rank waits for others
  std::string communicator = "auto";  ///< "auto", "mpi" or "nccl"
  bool overwrite = false;
  bool extend = false;          ///< continue a finished run with a longer schedule
  std::string resume = "auto";  ///< "auto", "never" or a path
  bool dry_run = false;
  bool verbose = false;  ///< every rank logs, not only the first

  bool once = false;        ///< watch: print once and exit
  double refresh = 2.0;     ///< watch: seconds between updates
  bool every_mode = false;  ///< plan: --mode all
  PlanArguments plan;
  ReportArguments report;

  bool json = false;
  bool offsets = false;
  bool cased = false;
  bool decode = false;  ///< tokenize: ids to text

  std::string shapes;                  ///< bench gemm: a model known by its sizes; empty: the task's first one
  std::size_t tokens = 3072;           ///< bench gemm: rows of the products
  std::size_t repeats = 5;             ///< timings per measurement, whose median is reported
  bool breakdown = false;              ///< bench step: break the time down by kernel
  bool predicts = false;               ///< bench batch: --plan, predict without running
  std::vector<std::string> providers;  ///< empty: all of this build

  std::string launcher = "mpirun -n {n}";      ///< compare: command that starts a program on {n} ranks
  std::vector<std::size_t> ranks = {1, 2, 4};  ///< compare
  std::vector<std::string> modes = {"replicated", "sharded-optimizer", "sharded-gradients",
                                    "sharded"};  ///< compare; bench batch has its own default

  bool help = false;
  std::vector<std::string> positional;
  std::vector<TypedOption> typed;  ///< options as typed, in order; without peer options that have no effect
  OptionSources sources;
};

}  // namespace mylos::app
