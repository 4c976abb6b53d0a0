#include "tasks/language_modeling/language_samples.hpp"

#include "core/base/crc32c.hpp"
#include "core/base/error.hpp"
#include "data/text/sample_file.hpp"
#include "families/interface/fast_tokenizer.hpp"
#include "families/model_families.hpp"

#include <fmt/format.h>

#include <utility>

namespace mylos::tasks {

namespace names = nn::names;

namespace {

constexpr std::int32_t no_label = -1;

std::optional<data::TokenId> token_of(bool is_left_out, std::optional<data::TokenId> id) {
  return is_left_out ? std::nullopt : id;
}

}  // namespace

std::unique_ptr<data::Tokenizer> load_tokenizer(const FileReader& files, const std::filesystem::path& directory,
                                                const Notice& notice) {
  const data::ModelFamily& family = families::find_model_family(files, directory);
  std::unique_ptr<data::Tokenizer> tokenizer = family.tokenizer(files, directory);
  if (!notice) return tokenizer;
  if (tokenizer) {
    families::notice_tokenizer_choice(files, directory, notice);
  } else {
    notice(fmt::format("{} has no tokenizer ({} or {}): documents must contain ids, as input_ids in JSON lines",
                       directory.string(), families::fast_tokenizer_file, family.tokenizer_file));
  }
  return tokenizer;
}

data::SampleOptions sample_options(const LanguageConfig& config, const families::TextModel& model,
                                   const data::Tokenizer* tokenizer) {
  const auto begin = tokenizer ? tokenizer->first_token(model.begin_token) : model.begin_token;
  const auto end = model.end_tokens.empty() ? std::nullopt : std::optional(model.end_tokens.front());
  return {.max_length = config.max_length,
          .long_documents = config.long_documents,
          .loss_on = config.loss_on,
          .begin = token_of(config.no_bos, begin),
          .end = token_of(config.no_eos, end),
          .vocabulary_size = model.vocabulary};
}

data::SampleSet load_samples(const std::filesystem::path& path, const data::Tokenizer* tokenizer,
                             const families::TextModel& model, const std::filesystem::path& directory,
                             const LanguageConfig& config, std::optional<std::size_t> limit, const Notice& notice) {
  data::SampleOptions options = sample_options(config, model, tokenizer);
  const data::ReadOptions reading{.text_field = config.text_field,
                                  .limit = limit,
                                  .strict = config.strict,
                                  .model = directory,
                                  .chat_time = config.chat_time};
  data::SampleSet samples;
  if (path.extension() == ".h5" || data::is_sample_file(path)) {
    data::PreparedSamples prepared = data::read_sample_file(path);
    if (prepared.set.chat_template) options.chat_template = data::ChatFormat(directory).checksum();
    data::check_prepared_for(prepared, path, tokenizer ? std::optional(tokenizer->identity()) : std::nullopt, options);
    samples = std::move(prepared.set);
    if (limit) data::limit_documents(samples, *limit);
  } else {
    samples = data::read_samples(path, tokenizer, options, reading);
  }
  for (const std::string& line : data::describe_losses(samples, options)) {
    notice(fmt::format("{}: {}", path.string(), line));
  }
  return samples;
}

std::vector<std::string> document_texts(const std::filesystem::path& path) {
  const auto reader = data::open_documents(path, data::document_format(path));
  std::vector<std::string> texts;
  for (data::Document document; reader->next(document);) texts.push_back(document.text);
  return texts;
}

std::uint32_t checksum_of(const data::SampleSet& samples) {
  const std::uint32_t ids = crc32c(std::as_bytes(std::span(samples.ids)));
  std::vector<std::uint64_t> starts(samples.starts.begin(), samples.starts.end());
  starts.push_back(ids);
  if (!samples.supervised.empty()) starts.push_back(crc32c(std::as_bytes(std::span(samples.supervised))));
  return crc32c(std::as_bytes(std::span(starts)));
}

void SampleBatcher::assemble(std::span<const std::size_t> samples, std::span<const std::uint32_t> ids,
                             Batch& batch) const {
  lengths_.clear();
  for (std::vector<std::int32_t>* values : {&tokens_, &labels_}) values->clear();
  for (const std::size_t index : samples) {
    const auto sample = samples_.sample(index);
    lengths_.push_back(sample.size());
    tokens_.insert(tokens_.end(), sample.begin(), sample.end());
    for (std::size_t i = 1; i < sample.size(); ++i) {
      labels_.push_back(samples_.is_supervised(samples_.starts[index] + i) ? sample[i] : no_label);
    }
    labels_.push_back(no_label);
  }
  batch.reset(lengths_, ids);
  batch.set_indices(names::tokens, tokens_);
  batch.set(names::labels, std::span<const std::int32_t>(labels_));
}

}  // namespace mylos::tasks
