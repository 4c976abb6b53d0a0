#pragma once

#include "core/base/option.hpp"
#include "tasks/task_kinds.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// Everything a command was told: what the engine is given, and what only commands read.
namespace mylos::app {

/// What only plan reads.
struct PlanArguments {
  std::string gpu;       ///< a kind of train/planning/machine.hpp, or cpu
  std::size_t gpus = 1;  ///< of all nodes together
  std::size_t nodes = 1;
  std::optional<std::size_t> threads;  ///< of a rank; empty = what this process would start
  std::optional<double> memory;        ///< GiB of one GPU, or of a rank on CPUs
  double network = 25.0;               ///< GB/s of a node in each direction
  std::optional<double> link;          ///< GB/s of collectives inside a node
  double storage = 1.0;                ///< GB/s that checkpoints are written with
  std::filesystem::path measured;      ///< what bench step --json printed; empty = the cache
  std::string job;                     ///< "slurm" or "pbs": print a script
};

/// What only report reads.
struct ReportArguments {
  std::filesystem::path kernels;                               ///< what bench step --breakdown --json printed
  std::filesystem::path batches;                               ///< what bench batch --json printed
  std::optional<std::pair<std::size_t, std::size_t>> between;  ///< two evaluations, by their steps
};

/// An option as it stood on the command line.
struct TypedOption {
  std::string name;                ///< in the table: "learning-rate"
  std::vector<std::string> words;  ///< {"--lr", "1e-3"}
};

struct Arguments {
  const tasks::TaskKind* task = &tasks::default_task_kind();  ///< whose options and data the run has
  tasks::RunConfig run = tasks::default_run(*task, 0);
  std::string model;                 ///< as typed; commands resolve it to a directory
  std::string save_strategy;         ///< Trainer's name for when checkpoints are written; empty = not given
  bool bf16 = false, fp16 = false;   ///< Trainer's names for a precision
  bool no_fsdp = false;              ///< another name for --mode replicated
  std::vector<std::string> remarks;  ///< options that were taken and have no effect

  std::filesystem::path data;        ///< what eval, prepare and bench read
  std::filesystem::path context;     ///< the text that ask reads
  std::filesystem::path vocabulary;  ///< vocab.txt of tokenize and of bench tokenize

  std::optional<std::size_t> batch_per_rank;
  /// Sequences of a micro-batch; a rank's batch is that times --gradient-accumulation-steps.
  std::optional<std::size_t> batch_size_per_device;
  bool batch_is_per_rank = false;  ///< settled: the batch is what one rank takes of a step

  std::filesystem::path config;       ///< a saved run.json
  std::optional<double> stop_before;  ///< seconds before the walltime's end at which a run ends
  std::optional<double> walltime;     ///< seconds from the program's start
  std::filesystem::path trace;        ///< where the first events of a run are written
  double collective_timeout = 600.0;  ///< seconds that a rank waits for others
  std::string communicator = "auto";  ///< or "mpi"
  bool overwrite = false;
  bool extend = false;          ///< go on with a finished run under a longer schedule
  std::string resume = "auto";  ///< or "never", or a path
  bool dry_run = false;
  bool verbose = false;  ///< every rank says what it does

  bool once = false;        ///< of watch: one picture
  double refresh = 2.0;     ///< of watch: seconds between pictures
  bool every_mode = false;  ///< --mode all, of plan
  PlanArguments plan;
  ReportArguments report;

  bool json = false;
  bool offsets = false;
  bool cased = false;
  bool decode = false;  ///< of tokenize

  std::string shapes;                  ///< of bench gemm: a model that is known by its sizes; empty: the task's first
  std::size_t tokens = 3072;           ///< rows of the products that bench gemm times
  std::size_t repeats = 5;             ///< timings, of which the median counts
  bool breakdown = false;              ///< of bench step: where the time goes
  bool predicts = false;               ///< of bench batch: --plan, nothing runs
  std::vector<std::string> providers;  ///< empty = all of this build

  std::string launcher = "mpirun -n {n}";      ///< of compare: what starts a program on {n} ranks
  std::vector<std::size_t> ranks = {1, 2, 4};  ///< of compare
  std::vector<std::string> modes = {"replicated", "sharded-optimizer", "sharded-gradients",
                                    "sharded"};  ///< of compare; bench batch has its own default

  bool help = false;
  std::vector<std::string> positional;
  std::vector<TypedOption> typed;  ///< the options of the command line, in its order; not those of peers without effect
  OptionSources sources;
};

}  // namespace mylos::app
