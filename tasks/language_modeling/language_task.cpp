#include "tasks/language_modeling/language_task.hpp"

#include "core/base/crc32c.hpp"
#include "core/base/error.hpp"
#include "core/base/files/files.hpp"
#include "core/base/text/quantities.hpp"
#include "data/huggingface/config_reader.hpp"
#include "data/text/sample_file.hpp"
#include "families/interface/fast_tokenizer.hpp"
#include "families/model_families.hpp"
#include "tasks/interface/order_file.hpp"
#include "tasks/language_modeling/language_modeling_kind.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

namespace mylos::tasks {
namespace {

namespace fs = std::filesystem;

/// Returns, for each step of an order file, the samples of the documents that it names.
std::vector<std::vector<std::size_t>> read_order(const fs::path& path, const data::SampleSet& samples) {
  return read_order_file(FileReader(), path, "document numbers",
                         [&](const Json& entry, std::string_view line, std::vector<std::size_t>& step) {
                           const JsonLocation location(line);
                           const std::size_t document = as_count(entry, location);
                           const auto [first, last] = samples.samples_of(document);
                           if (first == last)
                             location.fail(fmt::format("the training data has no document {}", document));
                           for (std::size_t sample = first; sample < last; ++sample) step.push_back(sample);
                         });
}

nn::HeadSettings next_token_head(const families::TextModel& model) { return *model.next_token; }

/// Says that the directory has no tokenizer only if texts are read.
LoadedModel load_model(const FileReader& files, const RunConfig& run, const Notice& notice) {
  const bool reads_data = !run.task.train.empty() || !run.task.dev.empty();
  return {files, run, language_modeling_head(), load_tokenizer(files, run.task.model, reads_data ? notice : Notice{}),
          notice};
}

}  // namespace

TextHead language_modeling_head() {
  return {families::BodyOutput::next_tokens, next_token_head, "ForCausalLM", {"CAUSAL_LM"}};
}

LanguageTask::LanguageTask(const FileReader& files, const RunConfig& run, const Notice& notice)
    : TextTask(run, notice, load_model(files, run, notice), language_config(run).max_length),
      config_(language_config(run)) {
  config_.chat_time = run.task.recorded_chat_time.empty() ? data::present_time() : run.task.recorded_chat_time;
}

void LanguageTask::read_data() {
  if (!configured_.train.empty()) {
    use_training_data(load(configured_.train, configured_.train_limit));
    if (!config_.order.empty()) order_ = read_order(config_.order, *train_);
  }
  if (!configured_.dev.empty()) {
    evaluation_ = std::make_unique<LanguageEvaluation>(load(configured_.dev, configured_.dev_limit));
  }
}

void LanguageTask::write_data(ByteWriter& bytes) const {
  if (train_) {
    bytes.add(*train_);
    bytes.add(order_);
  }
  if (evaluation_) bytes.add(evaluation_->samples());
  bytes.add(chat_time_);
}

void LanguageTask::receive_data(ByteReader& bytes) {
  const auto samples = [&] {
    data::SampleSet received;
    bytes.read(received);
    return received;
  };
  if (!configured_.train.empty()) {
    use_training_data(samples());
    bytes.read(order_);
  }
  if (!configured_.dev.empty()) evaluation_ = std::make_unique<LanguageEvaluation>(samples());
  bytes.read(chat_time_);
}

data::SampleSet LanguageTask::load(const fs::path& file, std::optional<std::size_t> limit) {
  data::SampleSet samples =
      load_samples(file, loaded_.tokenizer(), loaded_.text(), configured_.model, config_, limit, notice_);
  if (samples.chat_template && !is_prepared_documents(file)) chat_time_ = config_.chat_time;
  return samples;
}

void LanguageTask::use_training_data(data::SampleSet samples) {
  train_ = std::make_unique<data::SampleSet>(std::move(samples));
  batcher_ = std::make_unique<SampleBatcher>(*train_);
  shuffle(train_->size());
}

void LanguageTask::initial_values(const FileReader& files, const train::TensorWriter& write) const {
  if (!loaded_.files().has_weights(files)) {
    ensure(train_ != nullptr, fmt::format("{}: has no weights (model.safetensors or model.safetensors.index.json)",
                                          configured_.model.string()));
    notice_(fmt::format("{} has no weights: the model is initialised from Normal(0, {}) with --seed",
                        configured_.model.string(), data::shortest_decimal(loaded_.text().initializer_range)));
    return;
  }
  const data::WeightReport report = loaded_.read_weights(
      files, [](const std::string&) { return false; },
      [&](const std::string& name, const data::TensorReader& read) { write(name, read); });
  if (!report.ignored.empty()) {
    notice_(fmt::format("{}: {}", configured_.model.string(), data::ignored_line(report, "language modelling")));
  }
}

double LanguageTask::weight(std::span<const std::size_t> samples) const {
  std::uint64_t predicted = 0;
  for (const std::size_t sample : samples) predicted += train_->predicted(sample);
  return static_cast<double>(predicted);
}

void LanguageTask::assemble(std::size_t, std::span<const std::size_t> samples, std::span<const std::uint32_t> ids,
                            Batch& batch) const {
  batcher_->assemble(samples, ids, batch);
}

void LanguageTask::write_results(const fs::path& directory) const {
  write_text(directory / "results.json", evaluation_->results());
}

std::vector<DataChecksum> LanguageTask::data_checksums() const {
  std::vector<DataChecksum> checksums;
  if (train_) checksums.push_back({"train", configured_.train, checksum_of(*train_)});
  if (evaluation_) checksums.push_back({"dev", configured_.dev, checksum_of(evaluation_->samples())});
  if (!order_.empty()) checksums.push_back({"order", config_.order, order_checksum(order_)});
  return checksums;
}

nlohmann::ordered_json LanguageTask::resolved() const {
  nlohmann::ordered_json resolved = {{"attention", to_string(loaded_.text().attention.kernel)}};
  if (!chat_time_.empty()) resolved["chat-time"] = chat_time_;
  return resolved;
}

std::string LanguageTask::text_of(const data::SampleSet& samples) {
  return fmt::format("{}, {}, {}", count_of(samples.counts.documents, "document"), count_of(samples.size(), "sample"),
                     count_of(samples.ids.size(), "token"));
}

LanguageEvaluation::LanguageEvaluation(data::SampleSet samples)
    : samples_(std::move(samples)), batcher_(samples_), slices_(samples_.lengths()) {}

void LanguageEvaluation::assemble(std::size_t index, Batch& batch) const {
  const std::vector<std::size_t> samples = slices_.samples(index);
  batcher_.assemble(samples, std::vector<std::uint32_t>(samples.begin(), samples.end()), batch);
}

void LanguageEvaluation::take(std::size_t index, std::span<const float> outputs, std::span<const float> losses) {
  if (index == 0) {
    loss_sum_ = 0.0;
    right_ = 0;
  }
  loss_sum_ += std::accumulate(losses.begin(), losses.end(), 0.0);
  std::size_t row = 0;
  for (const std::size_t sample : slices_.samples(index)) {
    const auto ids = samples_.sample(sample);
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
      const bool is_right = static_cast<data::TokenId>(outputs[row + i]) == ids[i + 1];
      if (is_right && samples_.is_supervised(samples_.starts[sample] + i + 1)) ++right_;
    }
    row += ids.size();
  }
}

std::span<const train::MetricKind> LanguageEvaluation::kinds() const {
  static const std::array<train::MetricKind, 3> kinds = {{{"validation_loss", "Validation loss", "", false},
                                                          {"perplexity", "Perplexity", "", false},
                                                          {"accuracy", "Accuracy"}}};
  return kinds;
}

train::Metrics LanguageEvaluation::score() {
  const auto predicted = static_cast<double>(samples_.predicted());
  const double loss = loss_sum_ / predicted, share = static_cast<double>(right_) / predicted;
  const nlohmann::ordered_json results = {
      {"loss", loss}, {"perplexity", std::exp(loss)}, {"accuracy", share}, {"tokens", samples_.predicted()}};
  results_ = results.dump(2) + "\n";
  return {{"validation_loss", loss}, {"perplexity", std::exp(loss)}, {"accuracy", share}};
}

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
