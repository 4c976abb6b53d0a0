#include "tasks/language_modeling/language_modeling_kind.hpp"

#include "core/base/files/files.hpp"
#include "core/base/text/quantities.hpp"
#include "data/text/sample_file.hpp"
#include "tasks/language_modeling/language_task.hpp"

#include <fmt/format.h>

#include <memory>

namespace mylos::tasks {

void prepare_documents(const RunConfig& run, const std::filesystem::path& file, const std::filesystem::path& output,
                       const Notice& notice) {
  const LanguageConfig& config = language_config(run);
  const families::TextModel model =
      families::read_text_model({FileReader(), run.task.model / "config.json"}, language_modeling_head().input);
  const std::unique_ptr<data::Tokenizer> tokenizer = load_tokenizer(FileReader(), run.task.model, notice);
  data::PreparedSamples prepared{
      .set = load_samples(file, tokenizer.get(), model, run.task.model, config, run.task.train_limit, notice),
      .options = sample_options(config, model, tokenizer.get()),
      .tokenizer = {}};
  if (tokenizer) prepared.tokenizer = tokenizer->identity();
  output.extension() == ".h5" ? data::write_sample_file(output, prepared)
                              : data::write_sample_lines(output, prepared.set);
  notice(fmt::format("{}: {}, {}", output.string(), count_of(prepared.set.counts.documents, "document"),
                     count_of(prepared.set.size(), "sample")));
}

bool is_prepared_documents(const std::filesystem::path& file) {
  if (file.extension() == ".h5") return data::is_sample_file(file);
  const std::string begin = beginning_of(file);
  return begin.starts_with("{\"line\":") && begin.find("\"input_ids\":[") != std::string::npos;
}

}  // namespace mylos::tasks
