#include "tasks/language_modeling/planned_documents.hpp"

#include "core/base/error.hpp"
#include "core/base/quantities.hpp"
#include "core/base/usage_error.hpp"
#include "data/huggingface/llama_shapes.hpp"
#include "data/huggingface/model_names.hpp"
#include "tasks/language_modeling/language_task.hpp"
#include "tasks/language_modeling/llama_shape_of.hpp"

#include <fmt/format.h>

#include <system_error>

namespace mylos::tasks {
namespace {

/// What a plan without data counts, each of them full.
constexpr std::size_t full_samples = 10'000;

/// Null where `name` is a directory or no known name.
const data::NamedLlama* find_known(const std::string& name) {
  std::error_code unreadable;  // is told where it is read
  return std::filesystem::is_directory(name, unreadable) ? nullptr : data::find_llama_shape(name);
}

/// The default length is made to fit the model's positions. What the user asked for is never changed.
void fit_to_positions(RunConfig& run, const std::string& name, std::size_t positions, const OptionSources& sources,
                      const Notice& notice) {
  std::size_t& length = language_config(run).max_length;
  if (length <= positions) return;
  if (sources.was_given("max-length")) {
    throw UsageError(
        fmt::format("--max-length {}: expected at most {}, the positions that {} has", length, positions, name));
  }
  notice(fmt::format("{} has {} positions: --max-length is {}", name, positions, positions));
  length = positions;
}

}  // namespace

data::LlamaConfig find_llama_sizes(const std::string& name) {
  if (const data::NamedLlama* known = find_known(name)) return known->config;
  return data::read_llama_config(data::resolve_model(name) / "config.json");
}

void fit_samples(RunConfig& run, const std::string& name, const OptionSources& sources, const Notice& notice) {
  const std::size_t positions = data::read_llama_config(run.task.model / "config.json").max_position_embeddings;
  fit_to_positions(run, name, positions, sources, notice);
}

PlannedRun plan_documents(const std::string& name, const std::filesystem::path& file, const RunConfig& run,
                          const OptionSources& sources, const Notice& notice) {
  const data::NamedLlama* const known = find_known(name);
  ensure(known == nullptr || file.empty(),
         fmt::format("--data {}: {} is known by its sizes, and cutting documents needs a directory with its tokenizer; "
                     "give one with --model, or leave out --data",
                     file.string(), name));
  const data::LlamaConfig sizes = find_llama_sizes(name);
  PlannedRun planned{.config = run,
                     .name = name,
                     .model = name,
                     .network = nn::make_llama(llama_shape_of(sizes), run.engine.precision)};
  if (known == nullptr) planned.config.task.model = data::resolve_model(name);
  fit_to_positions(planned.config, name, sizes.max_position_embeddings, sources, notice);
  if (file.empty()) {
    const std::size_t length = language_config(planned.config).max_length;
    planned.lengths.assign(full_samples, length);
    planned.data = fmt::format("{} samples of {} tokens, each counted full; with --data FILE those that it has",
                               count_text(full_samples), length);
    planned.data_options = "--train FILE";
    return planned;
  }
  RunConfig reading = planned.config;
  reading.task.train = file;
  const LanguageTask task(reading, notice);
  const data::SampleSet& samples = *task.train_samples();
  for (std::size_t i = 0; i < samples.size(); ++i) planned.lengths.push_back(samples.length(i));
  planned.data = fmt::format("{}: {}", file.string(), count_of(planned.lengths.size(), "sample"));
  return planned;
}

}  // namespace mylos::tasks
