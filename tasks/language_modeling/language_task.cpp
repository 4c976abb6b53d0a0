#include "tasks/language_modeling/language_task.hpp"

#include "core/base/error.hpp"
#include "core/base/files/files.hpp"
#include "core/base/text/quantities.hpp"
#include "data/huggingface/config_reader.hpp"
#include "tasks/interface/order_file.hpp"
#include "tasks/language_modeling/language_modeling_kind.hpp"

#include <fmt/format.h>

#include <algorithm>

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

}  // namespace mylos::tasks
