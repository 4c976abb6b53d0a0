#pragma once

#include "tasks/interface/text_task.hpp"
#include "tasks/language_modeling/language_evaluation.hpp"
#include "tasks/language_modeling/language_samples.hpp"

#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

/// Language modelling. Documents are cut into samples, the label of each token is the next token, and the score is the
/// perplexity.
namespace mylos::tasks {

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
