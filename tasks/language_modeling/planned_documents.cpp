#include "tasks/language_modeling/planned_documents.hpp"

#include "core/base/quantities.hpp"
#include "core/base/usage_error.hpp"
#include "families/llama/llama_body.hpp"
#include "families/llama/llama_config.hpp"
#include "tasks/interface/attention_choice.hpp"
#include "tasks/interface/text_model.hpp"
#include "tasks/language_modeling/language_task.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace mylos::tasks {
namespace {

/// Number of samples in plans without data, each of full length.
constexpr std::size_t full_samples = 10'000;

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

PlannedRun plan_documents(const std::string& name, const std::filesystem::path& file, const RunConfig& run,
                          const OptionSources& sources, const Notice& notice) {
  RunConfig fitted = run;
  const families::NamedModel model = find_planned_model(fitted, name, "llama", file);
  const families::LlamaShape sizes = families::read_llama_config(model.config);
  fit_max_length(language_config(fitted).max_length, sizes.positions, name, sources, notice);
  PlannedRun planned{
      .config = std::move(fitted), .name = model.name, .model = model.fetched, .network = planned_network(sizes, run)};
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
