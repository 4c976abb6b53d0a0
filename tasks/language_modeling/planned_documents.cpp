#include "tasks/language_modeling/planned_documents.hpp"

#include "core/base/quantities.hpp"
#include "core/base/usage_error.hpp"
#include "families/llama/llama_body.hpp"
#include "families/llama/llama_shapes.hpp"
#include "families/model_directory.hpp"
#include "tasks/interface/attention_choice.hpp"
#include "tasks/interface/text_model.hpp"
#include "tasks/language_modeling/language_task.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>

namespace mylos::tasks {
namespace {

/// Number of samples in plans without data, each of full length.
constexpr std::size_t full_samples = 10'000;

bool is_directory(const std::string& name) {
  std::error_code unreadable;  // reported when it is read
  return std::filesystem::is_directory(name, unreadable);
}

/// Returns null if `name` is a directory or unknown.
const families::NamedLlama* find_known(const std::string& name) {
  return is_directory(name) ? nullptr : families::find_llama_shape(name);
}

/// Sets full samples of --max-length tokens.
void take_full_samples(PlannedRun& planned) {
  const std::size_t length = language_config(planned.config).max_length;
  planned.lengths.assign(std::max(full_samples, planned.config.task.batch), length);
  planned.data = fmt::format("{} samples of {} tokens each", count_text(planned.lengths.size()), length);
  planned.data_options = "--train FILE";
}

/// Returns a network with the attention kernel of the planned GPU.
std::unique_ptr<nn::Model> planned_network(const families::LlamaShape& sizes, const RunConfig& run) {
  families::LlamaShape shape = sizes;
  shape.attention = planned_attention(run.task, attention_use(families::attention_shape(shape), run.engine));
  return families::make_llama(shape, run.engine.precision);
}

}  // namespace

families::LlamaShape find_llama_sizes(const std::string& name) {
  if (const families::NamedLlama* known = find_known(name)) return known->config;
  return families::read_llama_config(families::resolve_model(name) / "config.json");
}

void fit_samples(RunConfig& run, const std::string& name, const OptionSources& sources, const Notice& notice) {
  const std::size_t positions = families::read_llama_config(run.task.model / "config.json").positions;
  fit_max_length(language_config(run).max_length, positions, name, sources, notice);
}

PlannedRun plan_documents(const std::string& name, const std::filesystem::path& file, const RunConfig& run,
                          const OptionSources& sources, const Notice& notice) {
  const families::NamedLlama* const known = find_known(name);
  RunConfig fitted = run;
  if (known == nullptr) {
    fitted.task.model = families::resolve_model(name);
  } else if (!file.empty()) {
    fitted.task.model = find_known_directory(known->name, known->fetched, file);
  }
  const families::LlamaShape sizes =
      known == nullptr ? families::read_llama_config(fitted.task.model / "config.json") : known->config;
  fit_max_length(language_config(fitted).max_length, sizes.positions, name, sources, notice);
  PlannedRun planned{.config = std::move(fitted),
                     .name = known == nullptr ? name : known->name,
                     .model = known == nullptr ? name : known->fetched,
                     .network = planned_network(sizes, run)};
  if (file.empty()) {
    take_full_samples(planned);
    planned.data += "; --data FILE plans for a file";
    return planned;
  }
  RunConfig reading = planned.config;
  reading.task.train = file;
  reading.task.attention = AttentionKernel::portable;  // only the data are used, and there may be no GPU here
  LanguageTask task(reading, notice);
  task.read_data();
  planned.lengths = task.train_samples()->lengths();
  planned.data = fmt::format("{}: {}", file.string(), count_of(planned.lengths.size(), "sample"));
  return planned;
}

}  // namespace mylos::tasks
