#pragma once

#include "core/kernels/gemm.hpp"
#include "data/huggingface/llama_config.hpp"
#include "data/huggingface/safetensors.hpp"
#include "nn/llama/llama.hpp"
#include "nn/optimizer.hpp"
#include "parallel/sharding/sharding_strategy.hpp"
#include "train/engine/task.hpp"
#include "train/engine/training_step.hpp"

#include <filesystem>
#include <string>
#include <vector>

/// Models recorded from PyTorch, and an engine for one of them.
namespace mylos::tests {

/// Samples packed without padding. A label is the next token; the last token of a sample has none.
struct RecordedTexts {
  std::vector<std::size_t> lengths;
  std::vector<std::int32_t> tokens, labels;

  void add(std::span<const std::int32_t> ids);
  /// Packs these samples into a batch.
  void fill(std::span<const std::size_t> samples, std::span<const std::uint32_t> ids, Batch& batch) const;
  /// Packs all samples.
  void fill(Batch& batch) const;
  std::size_t predicted() const { return tokens.size() - lengths.size(); }
  BatchShape shape() const;
};

/// Reads the texts of a recorded batch, without its padding.
RecordedTexts read_recorded_texts(const std::filesystem::path& batch_file);

/// Trains on all recorded texts in every step.
class RecordedLlamaTask final : public train::Task {
 public:
  RecordedLlamaTask(const std::filesystem::path& folder, RecordedTexts texts);

  const nn::LlamaModel& model() const override { return *model_; }
  void initial_values(const train::TensorWriter& write) const override;
  std::size_t steps_per_epoch() const override { return 1; }
  std::vector<std::size_t> global_batch(std::size_t) const override;
  std::size_t rows_of(std::size_t sample) const override { return texts_.lengths[sample]; }
  double weight(std::span<const std::size_t> samples) const override;
  void assemble(std::size_t, std::span<const std::size_t> samples, std::span<const std::uint32_t> ids,
                Batch& batch) const override {
    texts_.fill(samples, ids, batch);
  }
  train::Evaluation* evaluation() const override { return nullptr; }
  void write_results(const std::filesystem::path&) const override {}
  const train::ModelExporter* exporter() const override { return nullptr; }

  const RecordedTexts& texts() const { return texts_; }

 private:
  std::filesystem::path weights_;
  RecordedTexts texts_;
  std::unique_ptr<nn::LlamaModel> model_;
};

/// Recomputation and sharding strategy of an engine, on the ranks of `world` unless it is null.
struct LlamaLayout {
  nn::Recompute recompute = nn::Recompute::none;
  parallel::ModeKind mode = parallel::ModeKind::replicated;
  std::size_t shards = 1;  ///< number of ranks over which a unit is sharded
  parallel::Communicator* world = nullptr;
};

/// Everything a training step needs, with the recorded weights.
struct LlamaEngine {
  LlamaEngine(const std::filesystem::path& folder, const std::string& provider, RecordedTexts texts,
              const LlamaLayout& layout = {});
  LlamaEngine(const std::filesystem::path& folder, const std::string& provider, const LlamaLayout& layout = {})
      : LlamaEngine(folder, provider, read_recorded_texts(folder / "batch.safetensors"), layout) {}

  nn::Pass pass() {
    nn::Pass pass{space, gemm, store, mode->hooks(), arena};
    pass.recompute = recompute;
    return pass;
  }
  train::StepContext context() { return {task, store, *mode, *optimizer, gemm, arena, ranks}; }
  /// Returns the logits (T, V) of these texts.
  std::vector<double> logits(const RecordedTexts& texts);

  RecordedLlamaTask task;
  nn::Recompute recompute;
  ExecutionSpace space;
  Gemm gemm;
  std::unique_ptr<parallel::Communicator> alone = parallel::make_self_communicator();
  parallel::Communicator& ranks;
  parallel::Mesh mesh;
  ParameterStore store;
  std::unique_ptr<parallel::ShardingStrategy> mode;
  std::unique_ptr<nn::Optimizer> optimizer;
  Arena arena;
};

}  // namespace mylos::tests
