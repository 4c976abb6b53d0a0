#pragma once

#include "data/huggingface/bert_config.hpp"
#include "data/huggingface/pretrained.hpp"
#include "data/huggingface/wordpiece_files.hpp"
#include "tasks/question_answering/squad_config.hpp"
#include "tasks/question_answering/squad_evaluation.hpp"
#include "tasks/question_answering/squad_windows.hpp"
#include "train/engine/sampler.hpp"
#include "train/engine/task.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

/// Question answering on SQuAD: windows of contexts as samples, spans as labels, exact match and F1 as scores.
namespace mylos::tasks {

/// A data file of a run, and the checksum of what the run takes from it: not of its bytes, so that a file which is
/// moved, laid out anew or prepared keeps it.
struct DataChecksum {
  std::string option;  ///< that names the file: "train", "dev" or "order"
  std::filesystem::path file;
  std::uint32_t checksum = 0;
};

class SquadTask final : public train::Task {
 public:
  /// Reads the model's configuration and vocabulary, and cuts both data sets into windows. `notice` gets a line on
  /// whatever was left out. Errors: std::runtime_error on files, std::invalid_argument on options that do not fit them.
  SquadTask(const SquadConfig& config, Precision precision, std::uint64_t seed, Notice notice);
  /// The model alone, for questions that come later.
  SquadTask(const SquadConfig& config, Precision precision, Notice notice);

  const nn::Model& model() const override { return *model_; }
  void initial_values(const train::RowWriter& write) const override;

  std::size_t steps_per_epoch() const override;
  std::vector<std::size_t> global_batch(std::size_t step) const override;
  std::size_t rows_of(std::size_t sample) const override { return train_->length(sample); }
  double weight(std::span<const std::size_t> samples) const override { return static_cast<double>(samples.size()); }
  void assemble(std::size_t step, std::span<const std::size_t> samples, std::span<const std::uint32_t> ids,
                Batch& batch) const override;

  SquadEvaluation* evaluation() const override { return evaluation_.get(); }
  void write_results(const std::filesystem::path& directory) const override;
  std::string short_answers() const override;
  std::unique_ptr<train::ModelExport> start_export(const std::filesystem::path& directory) const override;

  const data::BertConfig& bert() const { return bert_; }
  const data::WordPieceTokenizer& tokenizer() const { return tokenizer_; }
  /// Null where there is no training data.
  const SquadWindows* train_windows() const { return train_.get(); }
  /// Of the files that the configuration names.
  std::vector<DataChecksum> data_checksums() const;

 private:
  void read_head(const train::RowWriter& write) const;
  const data::TokenizerOptions& switches() const { return tokenizer_files_.options; }

  SquadConfig config_;
  Notice notice_;
  data::PretrainedModel pretrained_;
  data::BertConfig bert_;
  data::WordPieceFiles tokenizer_files_;
  data::WordPieceTokenizer tokenizer_;
  std::unique_ptr<nn::Model> model_;
  std::unique_ptr<SquadWindows> train_;
  std::unique_ptr<WindowBatcher> batcher_;
  std::unique_ptr<train::EpochSampler> sampler_;
  std::vector<std::vector<std::size_t>> order_;  ///< windows step by step, where a file gives them
  std::unique_ptr<SquadEvaluation> evaluation_;
};

}  // namespace mylos::tasks
