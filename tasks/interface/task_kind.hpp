#pragma once

#include "core/base/notice.hpp"
#include "core/base/option.hpp"
#include "core/base/option_values.hpp"
#include "core/base/peer_option.hpp"
#include "tasks/interface/run_config.hpp"

#include <nlohmann/json_fwd.hpp>

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mylos {
class ParameterTable;
}
namespace mylos::nn {
class Model;
}
namespace mylos::train {
class ModelExporter;
}

namespace mylos::tasks {

class Task;
struct PlannedRun;
struct TrainedModel;

/// The settings of a program that fine-tunes the same models.
struct Recipe {
  std::string_view name;
  std::string_view origin;    ///< the program
  std::string_view settings;  ///< as typed on a command line
  std::string_view differs;   ///< what still differs from the program, in one line; empty: nothing known
};

/// Descriptions of the data for the help.
struct DataTexts {
  std::string_view trained;  ///< files for training and evaluation: "questions.json or features.h5"
  std::string_view read;     ///< files that eval, prepare, bench and plan read
  std::string_view entries;  ///< unit of --train-limit: "questions"
};

/// A kind of task: its options, the models that it serves, and its part in each command. tasks/task_kinds.hpp is the
/// registry.
class TaskKind {
 public:
  virtual ~TaskKind() = default;

  /// Returns the name used by --task: "question-answering".
  virtual std::string_view name() const = 0;
  /// Returns the name used in texts: "question answering".
  virtual std::string_view title() const = 0;
  virtual DataTexts data_texts() const = 0;
  /// Returns the values of model_type in the config.json of its models.
  virtual std::span<const std::string_view> model_types() const = 0;
  /// Returns the names of built-in model sizes, which plan accepts without a directory.
  std::vector<std::string> known_models() const;
  /// Returns whether `name` is one of these names, or the name that a model of these sizes is fetched by.
  bool knows_model(std::string_view name) const;
  /// Returns whether training begins from the initialiser for a name of built-in sizes.
  virtual bool trains_from_sizes() const { return false; }
  /// Returns whether training accepts `name` without a directory.
  bool trains_by_name(std::string_view name) const;

  /// Sets the defaults of `command` (its name) in `run`.
  virtual void set_defaults(RunConfig& run, std::string_view command) const = 0;
  /// Returns the options beyond those of every task.
  virtual std::vector<Option<RunConfig>> options() const = 0;
  /// Returns rows of the table of peers' options, for its data and its options.
  virtual std::span<const PeerOption> peer_options() const { return {}; }
  /// Returns the recipes that train it.
  virtual std::span<const Recipe> recipes() const { return {}; }
  /// Returns the metrics for --best-by, with the peers' names.
  virtual std::vector<Choice> metrics() const { return {{"loss", {"eval_loss"}}}; }
  /// Resolves its options after all are read; compare resolves as train. Errors: UsageError if they exclude each other.
  virtual void resolve(RunConfig&, const OptionSources&, [[maybe_unused]] std::string_view command) const {}
  /// Adapts the settings to the number of ranks, after the batch has been scaled to all of them. Errors: UsageError if
  /// a batch cannot be split over so many ranks.
  virtual void fit_ranks(RunConfig&, [[maybe_unused]] std::size_t ranks) const {}
  /// Returns the number that every micro-batch is a multiple of, in the units of --micro-batch.
  virtual std::size_t micro_batch_step(const RunConfig&) const { return 1; }
  /// Errors: UsageError if settings are incompatible.
  virtual void check(const RunConfig&) const {}

  /// Adapts the settings to the model in `run.task.model`, which the user called `name`. `notice` gets a line for each
  /// default that is adapted. Errors: UsageError if a setting given by the user does not fit.
  virtual void fit_model(RunConfig&, [[maybe_unused]] const std::string& name, const OptionSources&,
                         const Notice&) const {}

  /// Reads the model's directory. Task::read_data or Task::receive_data must follow. `notice` gets a line for each item
  /// skipped, also by these. Errors: std::runtime_error on files, std::invalid_argument on settings that do not fit
  /// them.
  virtual std::unique_ptr<Task> make(const RunConfig& run, const Notice& notice) const = 0;
  /// Returns the model called `name` (a directory, or built-in sizes) without weights. Errors: std::runtime_error
  /// naming the file or directory that is missing.
  virtual std::unique_ptr<nn::Model> network(const std::string& name, Precision precision) const = 0;
  /// Returns the network of a model from a checkpoint, without weights. Errors: those of network().
  virtual std::unique_ptr<nn::Model> trained_network(const TrainedModel& trained) const;
  /// Returns the exporter of a model from a checkpoint with the tensors of `table`: the one of the task that trained
  /// it.
  virtual std::unique_ptr<train::ModelExporter> trained_exporter(const TrainedModel& trained,
                                                                 const ParameterTable& table) const = 0;
  /// Plans a run of the model called `name` on the file `data` or, if that is empty, on the most common training data.
  /// Errors: std::runtime_error, UsageError.
  virtual PlannedRun plan(const std::string& name, const std::filesystem::path& data, const RunConfig& run,
                          const OptionSources& sources, const Notice& notice) const = 0;

  /// Writes the contents of `data` as samples to `output`, .h5 or .jsonl, and reports to `notice`. Errors: UsageError
  /// if the kind does not support it.
  virtual void prepare(const RunConfig& run, const std::filesystem::path& data, const std::filesystem::path& output,
                       const Notice& notice) const;
  /// Returns whether `prepare` reads the model's directory; otherwise --model may be left out.
  virtual bool prepares_for_model() const { return true; }
  /// Returns whether `prepare` wrote this file.
  virtual bool is_prepared(const std::filesystem::path&) const { return false; }

  /// Returns the texts in `data` that are tokenized. Errors: std::runtime_error naming the file; UsageError if the data
  /// are not texts.
  virtual std::vector<std::string> texts(const std::filesystem::path& data) const;

  /// Returns facts about the data for reports: {"rules", "SQuAD 2.0"}. `run` is a run.json.
  virtual std::vector<std::pair<std::string, std::string>> facts(const nlohmann::json& run) const;
};

/// Returns the task of a run with its data. Errors: those of TaskKind::make and Task::read_data.
std::unique_ptr<Task> make_with_data(const TaskKind& kind, const RunConfig& run, const Notice& notice);

}  // namespace mylos::tasks
