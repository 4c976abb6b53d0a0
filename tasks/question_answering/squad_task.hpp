#pragma once

#include "tasks/interface/text_task.hpp"
#include "tasks/question_answering/squad_config.hpp"
#include "tasks/question_answering/squad_evaluation.hpp"
#include "tasks/question_answering/squad_windows.hpp"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

/// Question answering on SQuAD: windows of contexts as samples, spans as labels, exact match and F1 as scores.
namespace mylos::tasks {

/// A start and an end logit for each token.
TextHead question_answering_head();

class SquadTask final : public TextTask {
 public:
  /// Reads the model's configuration and vocabulary; questions or data come later. `notice` gets a line for each item
  /// skipped. Errors: std::runtime_error on files, std::invalid_argument on options that do not fit them.
  SquadTask(const FileReader& files, const RunConfig& run, const Notice& notice);

  void read_data() override;
  void write_data(ByteWriter& bytes) const override;
  void receive_data(ByteReader& bytes) override;

  void initial_values(const FileReader& files, const train::TensorWriter& write) const override;
  void read_weight_headers(const FileReader& files) const override;

  std::size_t rows_of(std::size_t sample) const override { return train_->length(sample); }
  double weight(std::span<const std::size_t> samples) const override { return static_cast<double>(samples.size()); }
  void assemble(std::size_t step, std::span<const std::size_t> samples, std::span<const std::uint32_t> ids,
                Batch& batch) const override;

  SquadEvaluation* evaluation() const override { return evaluation_.get(); }
  std::optional<train::MetricKind> training_score() const override {
    return train::MetricKind{"training_exact_windows", "Exact windows in training", "%"};
  }
  void write_results(const std::filesystem::path& directory) const override;
  std::string short_answers() const override;

  std::vector<DataChecksum> data_checksums() const override;
  nlohmann::ordered_json resolved() const override;
  std::string train_text() const override;
  std::string dev_text() const override;
  EvaluatedSamples evaluated() const override;
  std::string results_text() const override { return evaluation_->official_score(); }

  std::vector<std::size_t> lengths() const override { return train_->lengths(); }
  const data::Tokenizer& tokenizer() const { return *loaded_.tokenizer(); }

 private:
  SquadWindows load(const std::filesystem::path& file, std::optional<std::size_t> limit, bool training) const;
  void use_training_data(SquadWindows windows);
  void use_evaluation_data(SquadWindows windows);
  void read_head(const FileReader& files, const train::TensorWriter& write) const;
  [[noreturn]] void fail_without_head(const data::WeightReport& report) const;

  SquadConfig config_;
  std::unique_ptr<SquadWindows> train_;
  std::unique_ptr<WindowBatcher> batcher_;
  std::unique_ptr<SquadEvaluation> evaluation_;
};

/// Reads `--order FILE`: JSON lines, one step per line, each a list of [question id, window index]. Returns, for each
/// step, indices into `windows`. Errors: std::runtime_error naming the line and the id or window that does not exist.
std::vector<std::vector<std::size_t>> read_order(const std::filesystem::path& path, const SquadWindows& windows);

}  // namespace mylos::tasks
