#pragma once

#include "core/base/notice.hpp"
#include "core/base/option.hpp"
#include "core/base/option_values.hpp"
#include "nn/model.hpp"
#include "tasks/interface/peer_option.hpp"
#include "tasks/interface/run_config.hpp"
#include "tasks/interface/task.hpp"
#include "tasks/interface/text_tokenizer.hpp"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mylos::tasks {

/// What a run is planned with: a model without weights, and how long its samples are.
struct PlannedRun {
  RunConfig config;   ///< fitted to the model
  std::string name;   ///< of the model
  std::string model;  ///< what --model of train calls it
  std::unique_ptr<nn::Model> network;
  train::WorkKind work = {};                                ///< what a step counts
  std::vector<std::size_t> lengths = {};                    ///< rows of the training samples, which are shuffled
  std::shared_ptr<const train::SampleStream> samples = {};  ///< the samples of each step, instead of lengths
  std::string data = {};                                    ///< what they are of: "questions.json: 120 windows"
  bool trains = true;                                       ///< false: only plans know the model
  std::string data_options = {};  ///< options of train that name the data where no file does: "--dataset squad"
};

/// The samples of the steps of a planned run.
std::shared_ptr<const train::SampleStream> planned_samples(const PlannedRun& run);

/// Another name of an option that every task has, for runs of one kind: {"batch-per-rank", "batch-size"}.
struct OptionAlias {
  std::string_view option;
  std::string_view alias;
};

/// What the help says of the data.
struct DataTexts {
  std::string_view trained;  ///< files to train and evaluate on: "questions.json or features.h5"
  std::string_view read;     ///< files that eval, prepare, bench and plan read
  std::string_view entries;  ///< what --train-limit counts: "questions"
};

/// A model as a checkpoint has it.
struct TrainedModel {
  std::filesystem::path model;   ///< directory with its configuration, or the name of a model that has none
  RunConfig run = {};            ///< the precisions of the training
  nlohmann::json resolved = {};  ///< what the run chose (Task::resolved), as its run.json says; null where none does
};

/// One kind of tasks: the options it has, the models it serves, and what commands make of it. tasks/task_kinds.hpp has
/// the table of them.
class TaskKind {
 public:
  virtual ~TaskKind() = default;

  /// As --task says it: "question-answering".
  virtual std::string_view name() const = 0;
  /// In texts: "question answering".
  virtual std::string_view title() const = 0;
  virtual DataTexts data_texts() const = 0;
  /// What the config.json of its models says as model_type.
  virtual std::span<const std::string_view> model_types() const = 0;
  /// Models that it knows by their sizes: names that plan takes without a directory.
  virtual std::vector<std::string> known_models() const { return {}; }
  /// Whether `name` is one of those, also by another name of it.
  virtual bool knows_model(std::string_view) const { return false; }
  /// Whether only plans know `name`: training does not take it.
  virtual bool only_plans(std::string_view) const { return false; }
  /// Whether training takes `name` without a directory: a model that it knows by its sizes, from the initialiser.
  virtual bool trains_by_name(std::string_view) const { return false; }

  /// Gives `run` the settings that hold where nothing is said to `command` (CommandBit).
  virtual void set_defaults(RunConfig& run, unsigned command) const = 0;
  /// The options that it has beside those of every task.
  virtual std::vector<Option<RunConfig>> options() const = 0;
  /// What peers for its data call the options of every task.
  virtual std::span<const OptionAlias> aliases() const { return {}; }
  /// The options of peers for its data that have no effect here.
  virtual std::span<const PeerOption> peer_options() const { return {}; }
  /// The metrics that --best-by names, with the peers' names.
  virtual std::vector<Choice> metrics() const { return {{"loss", {"eval_loss"}}}; }
  /// Settles its options once all are read. Errors: UsageError where they exclude each other.
  virtual void resolve(RunConfig&, const OptionSources&, [[maybe_unused]] unsigned command) const {}
  /// Fits the settings to the number of ranks, once the batch is that of all of them. Errors: UsageError where so many
  /// ranks cannot share a batch.
  virtual void fit_ranks(RunConfig&, [[maybe_unused]] std::size_t ranks) const {}
  /// The number that every micro-batch is a multiple of, in the units of --micro-batch.
  virtual std::size_t micro_batch_step(const RunConfig&) const { return 1; }
  /// Errors: UsageError where settings do not go together.
  virtual void check(const RunConfig&) const {}

  /// The settings that `command` takes over from the run whose model it uses.
  virtual std::vector<std::string_view> settings_of_run([[maybe_unused]] unsigned command) const { return {}; }
  /// Fits the settings to the model in `run.task.model`, which the user called `name`. `notice` gets a line where a
  /// default is made to fit. Errors: UsageError where a setting that was given does not fit.
  virtual void fit_model(RunConfig&, [[maybe_unused]] const std::string& name, const OptionSources&,
                         const Notice&) const {}

  /// Reads the model's directory and the data. `notice` gets a line on whatever was left out. Errors:
  /// std::runtime_error on files, std::invalid_argument on settings that do not fit them.
  virtual std::unique_ptr<Task> make(const RunConfig& run, const Notice& notice) const = 0;
  /// The model called `name` (a directory, or one that is known by its sizes) without weights. Errors:
  /// std::runtime_error naming what is not there.
  virtual std::unique_ptr<nn::Model> network(const std::string& name, Precision precision) const = 0;
  /// The network of a model from a checkpoint, without weights. Errors as of network().
  virtual std::unique_ptr<nn::Model> trained_network(const TrainedModel& trained) const {
    return network(trained.model.string(), Precision::float32);
  }
  /// Begins to write a model from a checkpoint, with the tensors of `table`, into `output`, with its configuration and
  /// the tokenizer's files.
  virtual std::unique_ptr<train::ModelExport> start_export(const TrainedModel& trained, const ParameterTable& table,
                                                           const std::filesystem::path& output) const = 0;
  /// The run of the model called `name` on the file `data`, or, where that is empty, on what most people train on.
  /// Errors: std::runtime_error, UsageError.
  virtual PlannedRun plan(const std::string& name, const std::filesystem::path& data, const RunConfig& run,
                          const OptionSources& sources, const Notice& notice) const = 0;

  /// Writes what `data` holds as samples into `output`, .h5 or .jsonl, and tells `notice` what it wrote. Errors:
  /// UsageError where the kind prepares nothing.
  virtual void prepare(const RunConfig& run, const std::filesystem::path& data, const std::filesystem::path& output,
                       const Notice& notice) const;
  /// Whether `prepare` reads the model's directory; else --model may be left out.
  virtual bool prepares_for_model() const { return true; }
  /// Whether `prepare` wrote this file.
  virtual bool is_prepared(const std::filesystem::path&) const { return false; }

  /// The tokenizer in a model's directory. Errors: std::runtime_error naming what is missing; UsageError where models
  /// of this kind have none.
  virtual std::unique_ptr<TextTokenizer> tokenizer(const std::filesystem::path& directory) const;

  /// What a report says of the data's rules: {"rules", "SQuAD 2.0"}. `run` is a run.json.
  virtual std::vector<std::pair<std::string, std::string>> facts(const nlohmann::json& /*run*/) const { return {}; }
};

}  // namespace mylos::tasks
