#pragma once

#include "tasks/interface/planned_run.hpp"
#include "tasks/interface/task_kind.hpp"
#include "tasks/interface/text_task.hpp"
#include "tasks/interface/trained_model.hpp"

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace mylos::tasks {

/// The description of a task on texts, beyond that of every task.
struct TextTraits {
  TextHead head;
  std::string sample;                      ///< in texts: "window"
  std::size_t& (*max_length)(RunConfig&);  ///< the setting --max-length
  void (*plan_without_data)(PlannedRun&);  ///< sets the lengths and the description of the samples
  std::unique_ptr<TextTask> (*make)(const FileReader&, const RunConfig&,
                                    const Notice&);  ///< Errors: those of TaskKind::make
};

/// A kind of task on texts. It serves all families whose bodies give what its head takes.
class TextKind : public TaskKind {
 public:
  TextKind(TaskTraits traits, const TextTraits& text);

  void fit_model(const FileReader& files, RunConfig& run, const std::string& name, const OptionSources& sources,
                 const Notice& notice) const override;
  std::unique_ptr<Task> make(const FileReader& files, const RunConfig& run, const Notice& notice) const override {
    return text_.make(files, run, notice);
  }
  void merge(const RunConfig& run, const std::filesystem::path& output, const Notice& notice) const override;
  ExportedModel export_model(const TrainedModel& trained) const override;
  /// Plans a run on the texts in `data` or, if that is empty, on the samples of plan_without_data. Built-in sizes need
  /// a directory only for the tokenizer that cuts texts.
  PlannedRun plan(const std::string& name, const std::filesystem::path& data, const RunConfig& run,
                  const OptionSources& sources, const Notice& notice) const override;

 private:
  /// Limits --max-length to the `positions` of the model that the user called `name`. The default is shortened with a
  /// line to `notice`, as in run_qa. Errors: UsageError if the user gave a longer length.
  void fit_max_length(RunConfig& run, std::size_t positions, const std::string& name, const OptionSources& sources,
                      const Notice& notice) const;

  TextTraits text_;
};

}  // namespace mylos::tasks
