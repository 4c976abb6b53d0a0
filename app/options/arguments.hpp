#pragma once

#include "core/base/options/option.hpp"
#include "tasks/task_kinds.hpp"

#include <any>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// The arguments of a command: the configuration of a run, and one part for each command with the options that only it
/// reads.
namespace mylos::app {

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

/// Options of one command, whose header also has their rows. Only the files that read them include it.
template <class Options>
class Part {
 public:
  Options& operator*() {
    if (!options_.has_value()) options_ = Options();
    return *std::any_cast<Options>(&options_);
  }
  const Options& operator*() const {
    static const Options defaults;
    return options_.has_value() ? *std::any_cast<Options>(&options_) : defaults;
  }
  Options* operator->() { return &**this; }
  const Options* operator->() const { return &**this; }

 private:
  std::any options_;
};

struct TrainArguments;    // train_options.hpp
struct PlanArguments;     // plan_options.hpp
struct CompareArguments;  // these and the others: tool_options.hpp
struct AskArguments;
struct CheckpointArguments;
struct TokenizeArguments;
struct BenchArguments;
struct WatchArguments;
struct ReportArguments;

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
  bool batch_is_per_rank = false;  ///< after resolve(): whether the batch counts samples per rank and step

  // Other options of several commands.
  bool overwrite = false;
  bool chat = false;  ///< texts are conversations
  bool json = false;
  double collective_timeout = 600.0;  ///< train, bench, doctor: seconds that a rank waits for others
  std::size_t repeats = 5;            ///< bench, compare: timings per measurement, whose median is reported
  std::vector<std::string> strategies = {"replicated", "sharded-optimizer", "sharded-gradients",
                                         "sharded"};  ///< compare; bench batch has its own default

  // Options of one command.
  Part<TrainArguments> train;
  Part<CompareArguments> compare;
  Part<AskArguments> ask;
  Part<CheckpointArguments> checkpoint;
  Part<TokenizeArguments> tokenize;
  Part<BenchArguments> bench;
  Part<PlanArguments> plan;
  Part<WatchArguments> watch;
  Part<ReportArguments> report;

  // The command line itself.
  bool help = false;
  std::vector<std::string> positional;
  std::vector<std::string> remarks;  ///< one line for each accepted option that has no effect
  std::vector<TypedOption> typed;    ///< options as typed, in order; without peers' that have no effect
  OptionSources sources;
};

}  // namespace mylos::app
