#pragma once

#include "core/base/files/file_reader.hpp"
#include "core/base/notice.hpp"
#include "core/base/options/option.hpp"
#include "core/base/options/option_values.hpp"
#include "core/base/options/peer_option.hpp"
#include "families/interface/body_output.hpp"
#include "tasks/interface/run_config.hpp"
#include "tasks/interface/run_report.hpp"

#include <nlohmann/json_fwd.hpp>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mylos::tasks {

class Task;
struct PlannedRun;
struct TrainedModel;
struct ExportedModel;

/// The arguments of a command that only one kind of task has.
struct CommandCall {
  const std::vector<std::string>& words;  ///< arguments that are no options
  const RunConfig& run;                   ///< settings before the model is found
  const OptionSources& sources;
  const std::filesystem::path& context;  ///< of --context
  bool json = false;                     ///< print JSON
  bool chat = false;                     ///< the words are conversations
  /// Takes the settings of the run that made the model, finds the model and starts the device. Returns the settings.
  /// Call it once, after the words are checked. Errors: UsageError, std::runtime_error.
  std::function<const RunConfig&()> start;
};

/// A command that only one kind of tasks has, by its name in the table of commands. `run` prints the results to
/// standard output, and messages to standard error. Errors: UsageError, std::runtime_error.
struct TaskCommand {
  std::string_view name;
  void (*run)(const CommandCall& call);
};

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

/// The description of a kind of task. Its functions are null if the kind does not have them.
struct TaskTraits {
  std::string_view name;   ///< for --task: "question-answering"
  std::string_view title;  ///< in texts: "question answering"
  DataTexts data_texts;
  std::optional<families::BodyOutput> takes = {};  ///< what its head takes: it serves all families that give it
  std::string_view architecture = {};  ///< end of its classes' names in transformers: "ForQuestionAnswering"
  std::span<const std::string_view> own_model_types = {};   ///< model_type of models that are of no family
  bool trains_by_name = false;                              ///< training takes names of built-in sizes, without weights
  std::vector<Option<RunConfig>> (*options)() = nullptr;    ///< beyond those of every task
  std::span<const PeerOption> peer_options = {};            ///< rows of the table of peers' options
  std::span<const Recipe> recipes = {};                     ///< that train it
  std::vector<Choice> metrics = {{"loss", {"eval_loss"}}};  ///< for --best-by, with the peers' names
  std::span<const TaskCommand> commands = {};               ///< that only this kind has
  bool prepares_for_model = true;                           ///< `prepare` reads the model's directory
  void (*prepare)(const RunConfig& run, const std::filesystem::path& data, const std::filesystem::path& output,
                  const Notice& notice) = nullptr;
  bool (*is_prepared)(const std::filesystem::path& file) = nullptr;                ///< whether `prepare` wrote it
  std::vector<std::string> (*texts)(const std::filesystem::path& data) = nullptr;  ///< that are tokenized
  RunReport (*report)(const ReportedRuns& runs) = nullptr;
};

/// A kind of task: its options, the models that it serves, and its part in each command. tasks/task_kinds.hpp is the
/// registry.
class TaskKind {
 public:
  explicit TaskKind(TaskTraits traits) : traits_(std::move(traits)) {}
  virtual ~TaskKind() = default;

  std::string_view name() const { return traits_.name; }
  std::string_view title() const { return traits_.title; }
  const DataTexts& data_texts() const { return traits_.data_texts; }
  /// Returns the values of model_type in the config.json of the models that it serves.
  std::vector<std::string_view> model_types() const;
  bool serves(std::string_view model_type) const;
  /// Returns whether a class of this name in transformers is for this task: "BertForQuestionAnswering".
  bool is_of_class(std::string_view name) const {
    return !traits_.architecture.empty() && name.ends_with(traits_.architecture);
  }
  /// Returns the names of built-in model sizes, which plan accepts without a directory.
  std::vector<std::string> known_models() const;
  /// Returns whether `name` is one of these names, or the name that a model of these sizes is fetched by.
  bool knows_model(std::string_view name) const;
  /// Returns whether training accepts `name` without a directory.
  bool trains_by_name(std::string_view name) const;
  std::span<const PeerOption> peer_options() const { return traits_.peer_options; }
  std::span<const Recipe> recipes() const { return traits_.recipes; }
  const std::vector<Choice>& metrics() const { return traits_.metrics; }
  std::span<const TaskCommand> commands() const { return traits_.commands; }
  std::vector<Option<RunConfig>> options() const;
  bool prepares_for_model() const { return traits_.prepares_for_model; }
  /// Writes the contents of `data` as samples to `output`, .h5 or .jsonl, and reports to `notice`. Errors: UsageError
  /// if the kind does not support it.
  void prepare(const RunConfig& run, const std::filesystem::path& data, const std::filesystem::path& output,
               const Notice& notice) const;
  bool is_prepared(const std::filesystem::path& file) const;
  /// Returns the texts in `data` that are tokenized. Errors: std::runtime_error naming the file; UsageError if the data
  /// are not texts.
  std::vector<std::string> texts(const std::filesystem::path& data) const;
  /// Returns what a report shows of the samples of `runs`, which are all of this kind. Errors: UsageError.
  RunReport report(const ReportedRuns& runs) const { return traits_.report ? traits_.report(runs) : RunReport(); }

  /// Sets the defaults of `command` (its name) in `run`.
  virtual void set_defaults(RunConfig& run, std::string_view command) const = 0;
  /// Resolves its options after all are read; compare resolves as train. Errors: UsageError if they exclude each other.
  virtual void resolve(RunConfig&, const OptionSources&, [[maybe_unused]] std::string_view command) const {}
  /// Adapts the settings to the number of ranks, after the batch has been scaled to all of them. Errors: UsageError if
  /// a batch cannot be split over so many ranks.
  virtual void fit_ranks(RunConfig&, [[maybe_unused]] std::size_t ranks) const {}
  /// Returns the number that every micro-batch is a multiple of, in the units of --micro-batch.
  virtual std::size_t micro_batch_step(const RunConfig&) const { return 1; }
  /// Errors: TaskError if settings are incompatible.
  virtual void check(const RunConfig&) const {}

  /// Adapts the settings to the model in `run.task.model`, which the user called `name`. `notice` gets a line for each
  /// default that is adapted. Errors: UsageError if a setting given by the user does not fit.
  virtual void fit_model(const FileReader&, RunConfig&, [[maybe_unused]] const std::string& name, const OptionSources&,
                         const Notice&) const {}

  /// Reads the model's directory. Task::read_data or Task::receive_data must follow. `notice` gets a line for each item
  /// skipped, also by these. Errors: std::runtime_error on files, std::invalid_argument on settings that do not fit
  /// them.
  virtual std::unique_ptr<Task> make(const FileReader& files, const RunConfig& run, const Notice& notice) const = 0;
  /// Writes the model in `run.task.model` with the adapter of the run in its weights to the directory `output`. Errors:
  /// UsageError if models of this kind take no adapters; those of reading and writing.
  virtual void merge(const RunConfig& run, const std::filesystem::path& output, const Notice& notice) const;
  /// Returns a model from a checkpoint. Errors: std::runtime_error naming the file or directory that is missing.
  virtual ExportedModel export_model(const TrainedModel& trained) const = 0;
  /// Plans a run of the model called `name` on the file `data` or, if that is empty, on the most common training data.
  /// Errors: std::runtime_error, UsageError.
  virtual PlannedRun plan(const std::string& name, const std::filesystem::path& data, const RunConfig& run,
                          const OptionSources& sources, const Notice& notice) const = 0;

  /// Returns facts about the data for reports: {"rules", "SQuAD 2.0"}. `run` is a run.json.
  virtual std::vector<std::pair<std::string, std::string>> facts(const nlohmann::json& run) const;

 private:
  TaskTraits traits_;
};

/// Returns the task of a run with its data. Errors: those of TaskKind::make and Task::read_data.
std::unique_ptr<Task> make_with_data(const TaskKind& kind, const RunConfig& run, const Notice& notice);

}  // namespace mylos::tasks
