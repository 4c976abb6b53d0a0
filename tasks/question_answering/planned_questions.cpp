#include "tasks/question_answering/planned_questions.hpp"

#include "core/base/quantities.hpp"
#include "families/bert/bert_body.hpp"
#include "families/bert/bert_config.hpp"
#include "tasks/interface/attention_choice.hpp"
#include "tasks/interface/text_model.hpp"
#include "tasks/question_answering/squad_task.hpp"

#include <fmt/format.h>

#include <utility>

namespace mylos::tasks {
namespace {

/// Number of windows in plans without data, each of full length: SQuAD v1.1's training questions, cut with BERT's
/// uncased vocabulary at 384 tokens with 128 shared.
constexpr std::size_t squad_windows = 88'524;

/// Returns a network with the attention kernel of the planned GPU.
std::unique_ptr<nn::Model> planned_network(const families::BertShape& sizes, const RunConfig& run) {
  families::BertShape shape = with_dropout(sizes, run.task.dropout);
  shape.attention = planned_attention(run.task, attention_use(families::attention_shape(shape), run.engine,
                                                              static_cast<double>(shape.attention_dropout)));
  return families::make_bert_question_answering(shape, run.engine.precision);
}

}  // namespace

PlannedRun plan_questions(const std::string& name, const std::filesystem::path& file, const RunConfig& run,
                          const OptionSources& sources, const Notice& notice) {
  RunConfig fitted = run;
  const families::NamedModel model = find_planned_model(fitted, name, "bert", file);
  const families::BertShape sizes = families::read_bert_config(model.config);
  fit_max_length(squad_config(fitted).max_length, sizes.positions, name, sources, notice);
  PlannedRun planned{
      .config = std::move(fitted), .name = model.name, .model = model.fetched, .network = planned_network(sizes, run)};
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
