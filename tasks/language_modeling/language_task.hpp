#pragma once

#include "core/base/notice.hpp"
#include "core/batch.hpp"
#include "data/huggingface/pretrained.hpp"
#include "data/text/samples.hpp"
#include "families/interface/text_model.hpp"
#include "tasks/interface/evaluation_slices.hpp"
#include "tasks/interface/text_task.hpp"
#include "tasks/language_modeling/language_config.hpp"
#include "train/engine/task.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

/// Language modelling. Documents are cut into samples, the label of each token is the next token, and the score is the
/// perplexity.
namespace mylos::tasks {

/// Returns the tokenizer in a model's directory; null if it has none, which is reported to `notice` if that is set.
/// Errors: std::runtime_error naming the file if it cannot be read or has more pieces than the model's vocabulary.
std::unique_ptr<data::Tokenizer> load_tokenizer(const FileReader& files, const std::filesystem::path& directory,
                                                const Notice& notice);

/// Returns how `config` cuts documents for a model, whose configuration gives BOS and EOS.
data::SampleOptions sample_options(const LanguageConfig& config, const families::TextModel& model,
                                   const data::Tokenizer* tokenizer);

/// Reads the documents of a file and cuts them into samples, or reads a sample file of `mylos prepare`. `tokenizer` is
/// null if the model's directory has none; the documents must then contain ids. `directory` is the model's. `notice`
/// gets a line for each item skipped. Errors: std::runtime_error naming the file.
data::SampleSet load_samples(const std::filesystem::path& path, const data::Tokenizer* tokenizer,
                             const families::TextModel& model, const std::filesystem::path& directory,
                             const LanguageConfig& config, std::optional<std::size_t> limit, const Notice& notice);

/// Returns the texts of a file's documents; empty ones for documents of ids. Errors: std::runtime_error naming the
/// file.
std::vector<std::string> document_texts(const std::filesystem::path& path);

/// Returns a checksum over tokens, starts and what is supervised of all samples: equal if the same data is trained on
/// or evaluated.
std::uint32_t checksum_of(const data::SampleSet& samples);

/// Makes batches of samples. Keeps its host buffers between calls.
class SampleBatcher {
 public:
  explicit SampleBatcher(const data::SampleSet& samples) : samples_(samples) {}

  /// Packs these samples; `ids` are their positions in the global batch. The label of a row is the token that follows
  /// it, if that is supervised.
  void assemble(std::span<const std::size_t> samples, std::span<const std::uint32_t> ids, Batch& batch) const;
  /// Returns the labels of the last batch, one per row; negative if a row has none.
  std::span<const std::int32_t> labels() const { return labels_; }

 private:
  const data::SampleSet& samples_;
  mutable std::vector<std::size_t> lengths_;
  mutable std::vector<std::int32_t> tokens_, labels_;
};

/// Scores a language model by the loss per predicted token in nats, its exponential (perplexity), and the accuracy of
/// the most likely token.
class LanguageEvaluation final : public train::Evaluation {
 public:
  explicit LanguageEvaluation(data::SampleSet samples);
  LanguageEvaluation(const LanguageEvaluation&) = delete;  // batches refer to the samples
  LanguageEvaluation& operator=(const LanguageEvaluation&) = delete;

  const data::SampleSet& samples() const { return samples_; }

  std::size_t batches() const override { return slices_.count(); }
  BatchShape largest_batch() const override { return slices_.largest(); }
  void assemble(std::size_t index, Batch& batch) const override;
  void take(std::size_t index, std::span<const float> outputs, std::span<const float> losses) override;
  train::Metrics score() override;
  std::span<const train::MetricKind> kinds() const override;

  /// Returns the last score in the format of results.json; empty before the first.
  const std::string& results() const { return results_; }

 private:
  data::SampleSet samples_;
  SampleBatcher batcher_;
  EvaluationSlices slices_;
  double loss_sum_ = 0.0;  ///< sum over the batches taken since the first
  std::size_t right_ = 0;  ///< number of correctly predicted tokens
  std::string results_;
};

/// The logits of the next token.
TextHead language_modeling_head();

class LanguageTask final : public TextTask {
 public:
  /// Reads the model's configuration and tokenizer; the data come later. Calls `notice` with one line for each item
  /// skipped. Errors: std::runtime_error for a file that cannot be read or is malformed, and for an unsupported
  /// --attention; std::invalid_argument for other options that do not fit the model or the data.
  LanguageTask(const FileReader& files, const RunConfig& run, const Notice& notice);

  void read_data() override;
  void write_data(ByteWriter& bytes) const override;
  void receive_data(ByteReader& bytes) override;

  /// Writes the weights of the model directory. If it has none, writes nothing, and training starts from random values.
  /// Errors: std::runtime_error if it has no weights and there is no training data.
  void initial_values(const FileReader& files, const train::TensorWriter& write) const override;

  std::size_t rows_of(std::size_t sample) const override { return train_->length(sample); }
  /// Returns the number of predicted tokens.
  double weight(std::span<const std::size_t> samples) const override;
  void assemble(std::size_t step, std::span<const std::size_t> samples, std::span<const std::uint32_t> ids,
                Batch& batch) const override;

  LanguageEvaluation* evaluation() const override { return evaluation_.get(); }
  void write_results(const std::filesystem::path& directory) const override;

  std::vector<DataChecksum> data_checksums() const override;
  nlohmann::ordered_json resolved() const override;
  std::string train_text() const override { return text_of(*train_); }
  std::string dev_text() const override { return text_of(evaluation_->samples()); }
  EvaluatedSamples evaluated() const override { return {evaluation_->samples().size(), "samples"}; }
  std::string results_text() const override { return evaluation_->results(); }

  std::vector<std::size_t> lengths() const override { return train_->lengths(); }

 private:
  data::SampleSet load(const std::filesystem::path& file, std::optional<std::size_t> limit);
  void use_training_data(data::SampleSet samples);
  static std::string text_of(const data::SampleSet& samples);

  LanguageConfig config_;
  std::string chat_time_;  ///< the time in the conversations of the data; empty = there are none, or prepared ones
  std::unique_ptr<data::SampleSet> train_;
  std::unique_ptr<SampleBatcher> batcher_;
  std::unique_ptr<LanguageEvaluation> evaluation_;
};

}  // namespace mylos::tasks
