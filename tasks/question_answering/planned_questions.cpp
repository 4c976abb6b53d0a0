#include "tasks/question_answering/planned_questions.hpp"

#include "core/base/error.hpp"
#include "core/base/quantities.hpp"
#include "families/bert/bert_config.hpp"
#include "families/bert/bert_body.hpp"
#include "families/model_directory.hpp"
#include "tasks/interface/attention_choice.hpp"
#include "tasks/interface/text_model.hpp"
#include "tasks/question_answering/squad_task.hpp"

#include <fmt/format.h>

#include <system_error>
#include <utility>
#include <vector>

namespace mylos::tasks {
namespace {

/// Number of windows in plans without data, each of full length: SQuAD v1.1's training questions, cut with BERT's
/// uncased vocabulary at 384 tokens with 128 shared.
constexpr std::size_t squad_windows = 88'524;

void check_length(const RunConfig& run, const families::NamedBert& known) {
  const std::size_t length = squad_config(run).max_length, positions = known.config.positions;
  ensure(length <= positions, fmt::format("--max-length {}: {} has {} positions", length, known.name, positions));
}

/// Returns null if `name` is a directory or unknown.
const families::NamedBert* find_known(const std::string& name) {
  std::error_code unreadable;  // reported when it is read
  return std::filesystem::is_directory(name, unreadable) ? nullptr : families::find_bert_shape(name);
}

/// Returns the sizes of the model in a directory that the user called `name`.
families::NamedBert read_sizes(const std::string& name, const std::filesystem::path& directory) {
  return {name, families::read_bert_config(directory / "config.json"), name};
}

/// Returns the sizes of the planned model. If there is a directory, sets it in the run and adapts the windows to it.
families::NamedBert find_planned_sizes(const std::string& name, const std::filesystem::path& file, RunConfig& run,
                                       const OptionSources& sources, const Notice& notice) {
  const families::NamedBert* const known = find_known(name);
  if (known != nullptr && file.empty()) {
    check_length(run, *known);
    return *known;
  }
  run.task.model =
      known == nullptr ? families::resolve_model(name) : find_known_directory(known->name, known->fetched, file);
  const families::NamedBert sizes = known == nullptr ? read_sizes(name, run.task.model) : *known;
  fit_max_length(squad_config(run).max_length, sizes.config.positions, sizes.fetched, sources, notice);
  return sizes;
}

/// Returns a network with the attention kernel of the planned GPU.
std::unique_ptr<nn::Model> planned_network(const families::BertShape& sizes, const RunConfig& run) {
  families::BertShape shape = with_dropout(sizes, run.task.dropout);
  shape.attention = planned_attention(run.task, attention_use(families::attention_shape(shape), run.engine,
                                                              static_cast<double>(shape.attention_dropout)));
  return families::make_bert_question_answering(shape, run.engine.precision);
}

}  // namespace

families::NamedBert find_bert_sizes(const std::string& name) {
  if (const families::NamedBert* known = find_known(name)) return *known;
  return read_sizes(name, families::resolve_model(name));
}

void fit_windows(RunConfig& run, const std::string& name, const OptionSources& sources, const Notice& notice) {
  const std::size_t positions = families::read_bert_config(run.task.model / "config.json").positions;
  fit_max_length(squad_config(run).max_length, positions, name, sources, notice);
}

PlannedRun plan_questions(const std::string& name, const std::filesystem::path& file, const RunConfig& run,
                          const OptionSources& sources, const Notice& notice) {
  RunConfig fitted = run;
  const families::NamedBert sizes = find_planned_sizes(name, file, fitted, sources, notice);
  PlannedRun planned{.config = std::move(fitted),
                     .name = sizes.name,
                     .model = sizes.fetched,
                     .network = planned_network(sizes.config, run)};
  if (file.empty()) {
    const std::size_t length = squad_config(planned.config).max_length;
    planned.lengths.assign(squad_windows, length);
    planned.data =
        fmt::format("{} windows of {} tokens each, as many windows as SQuAD v1.1 has; --data FILE plans for a file",
                    count_text(squad_windows), length);
    planned.data_options = "--dataset squad --do-train";
    return planned;
  }
  RunConfig reading = planned.config;
  reading.task.train = file;
  reading.task.attention = AttentionKernel::portable;  // only the data are used, and there may be no GPU here
  SquadTask task(reading, notice);
  task.read_data();
  planned.lengths = task.train_windows()->lengths();
  planned.data = fmt::format("{}: {}", file.string(), count_of(planned.lengths.size(), "window"));
  return planned;
}

}  // namespace mylos::tasks
