#include "tasks/question_answering/planned_questions.hpp"

#include "core/base/error.hpp"
#include "core/base/quantities.hpp"
#include "core/base/usage_error.hpp"
#include "data/huggingface/model_names.hpp"
#include "nn/bert/bert_question_answering.hpp"
#include "tasks/question_answering/bert_shape.hpp"
#include "tasks/question_answering/squad_task.hpp"

#include <fmt/format.h>

#include <stdexcept>
#include <system_error>
#include <vector>

namespace mylos::tasks {
namespace {

/// Windows of SQuAD v1.1's training questions, cut by BERT's uncased vocabulary at 384 tokens with 128 shared: what a
/// plan without data counts, each of them full.
constexpr std::size_t squad_windows = 88'524;

std::size_t positions_of(const RunConfig& run) {
  return data::read_bert_config(run.task.model / "config.json").max_position_embeddings;
}

std::vector<std::size_t> lengths_of(const SquadWindows& windows) {
  std::vector<std::size_t> lengths(windows.count());
  for (std::size_t i = 0; i < lengths.size(); ++i) lengths[i] = windows.length(i);
  return lengths;
}

/// Errors: std::runtime_error where a model that is known by its sizes has no directory.
void check_vocabulary(const data::NamedBert& known, const std::filesystem::path& file) {
  try {
    data::resolve_model(known.fetched);
  } catch (const std::runtime_error&) {
    fail(
        fmt::format("--data {}: {} is known by its sizes, and cutting questions needs a directory with its vocabulary; "
                    "get it with: mylos fetch {}; or leave out --data",
                    file.string(), known.name, known.fetched));
  }
}

void check_length(const RunConfig& run, const data::NamedBert& known) {
  const std::size_t length = squad_config(run).max_length, positions = known.config.max_position_embeddings;
  ensure(length <= positions, fmt::format("--max-length {}: {} has {} positions", length, known.name, positions));
}

/// Null where `name` is a directory or no known name.
const data::NamedBert* find_known(const std::string& name) {
  std::error_code unreadable;  // is told where it is read
  return std::filesystem::is_directory(name, unreadable) ? nullptr : data::find_bert_shape(name);
}

/// Finds the directory that --data needs, and fits the windows to the model in it.
void read_directory(PlannedRun& planned, const OptionSources& sources, const Notice& notice) {
  planned.config.task.model = data::resolve_model(planned.model);
  fit_windows(planned.config, planned.model, sources, notice);
}

}  // namespace

data::NamedBert find_bert_sizes(const std::string& name) {
  if (const data::NamedBert* known = find_known(name)) return *known;
  return {name, data::read_bert_config(data::resolve_model(name) / "config.json"), name};
}

void fit_windows(RunConfig& run, const std::string& name, const OptionSources& sources, const Notice& notice) {
  const std::size_t positions = positions_of(run);
  std::size_t& length = squad_config(run).max_length;
  if (length <= positions) return;
  // What the user asked for is never changed.
  if (sources.was_given("max-length")) {
    throw UsageError(
        fmt::format("--max-length {}: expected at most {}, the positions that {} has", length, positions, name));
  }
  notice(fmt::format("{} has {} positions: --max-length is {}", name, positions, positions));
  length = positions;
}

PlannedRun plan_questions(const std::string& name, const std::filesystem::path& file, const RunConfig& run,
                          const OptionSources& sources, const Notice& notice) {
  const data::NamedBert* const known = find_known(name);
  if (known != nullptr && !file.empty()) check_vocabulary(*known, file);
  const data::NamedBert sizes = find_bert_sizes(name);
  PlannedRun planned{.config = run,
                     .name = sizes.name,
                     .model = sizes.fetched,
                     .network = nn::make_bert_question_answering(bert_shape(sizes.config), run.engine.precision)};
  if (known != nullptr && file.empty()) {
    check_length(run, *known);
  } else {
    read_directory(planned, sources, notice);
  }
  if (file.empty()) {
    const std::size_t length = squad_config(planned.config).max_length;
    planned.lengths.assign(squad_windows, length);
    planned.data = fmt::format(
        "{} windows of {} tokens, as many as SQuAD v1.1 has, each counted full; with --data FILE those that it has",
        count_text(squad_windows), length);
    planned.data_options = "--dataset squad --do-train";
    return planned;
  }
  RunConfig reading = planned.config;
  reading.task.train = file;
  const SquadTask task(reading, notice);
  planned.lengths = lengths_of(*task.train_windows());
  planned.data = fmt::format("{}: {}", file.string(), count_of(planned.lengths.size(), "window"));
  return planned;
}

}  // namespace mylos::tasks
