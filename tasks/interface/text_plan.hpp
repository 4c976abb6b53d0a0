#pragma once

#include "core/base/quantities.hpp"
#include "families/model_directory.hpp"
#include "tasks/interface/attention_choice.hpp"
#include "tasks/interface/planned_run.hpp"
#include "tasks/interface/text_model.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <utility>

namespace mylos::tasks {

/// Plans a run of the model called `name` on the texts in `file` or, if that is empty, on the samples of
/// Text::plan_without_data. Built-in sizes need a directory only for the tokenizer that cuts texts. `Text` describes a
/// task on texts with its family, as in tasks/language_modeling/language_modeling_kind.cpp. Errors: std::runtime_error
/// if a file or directory does not exist; UsageError as for fit_max_length.
template <class Text>
PlannedRun plan_texts(const std::string& name, const std::filesystem::path& file, const RunConfig& run,
                      const OptionSources& sources, const Notice& notice) {
  RunConfig fitted = run;
  const families::NamedModel model = find_planned_model(fitted, name, Text::family, file);
  auto sizes = Text::read(model.config);
  fit_max_length(Text::max_length(fitted), sizes.positions, name, sources, notice);
  const double dropout = Text::set_dropout(sizes, run.task.dropout);
  sizes.attention = planned_attention(run.task, attention_use(attention_shape(sizes), run.engine, dropout));
  PlannedRun planned{.config = std::move(fitted),
                     .name = model.name,
                     .model = model.fetched,
                     .network = Text::make(sizes, run.engine.precision)};
  if (file.empty()) {
    Text::plan_without_data(planned);
    planned.data += "; --data FILE plans for a file";
    return planned;
  }
  RunConfig reading = planned.config;
  reading.task.train = file;
  reading.task.attention = AttentionKernel::portable;  // only the data are used, and there may be no GPU here
  typename Text::Task task(reading, notice);
  task.read_data();
  planned.lengths = task.lengths();
  planned.data = fmt::format("{}: {}", file.string(), count_of(planned.lengths.size(), Text::sample));
  return planned;
}

}  // namespace mylos::tasks
