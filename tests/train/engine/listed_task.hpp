#pragma once

#include "train/engine/task.hpp"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

/// A model and a task that consist only of sizes.
namespace mylos::train {

inline constexpr std::size_t elements = 1000;
inline constexpr double flops_per_row = 6000.0;
inline constexpr std::size_t bytes_per_row = 1024;  // for training; a multiple of the arena's alignment

/// Takes 1 KiB per row for training, and half of that for inference and, if it recomputes, for training with
/// recomputation.
class SizedModel final : public nn::Model {
 public:
  SizedModel(std::size_t units, std::size_t unit_size, bool recomputes, std::size_t scratch)
      : table_(make_table(units, unit_size)), recomputes_(recomputes), scratch_(scratch) {}

  const ParameterTable& table() const override { return table_; }
  void freeze(std::span<const std::string> names) override {
    table_.freeze([&](const ParameterTensor& tensor) { return std::ranges::count(names, tensor.name) > 0; });
  }
  void plan(Arena& arena, const BatchShape& shape, ParameterStore::Purpose purpose,
            nn::Recompute recompute) const override {
    const bool keeps_all = purpose == ParameterStore::Purpose::training && recompute == nn::Recompute::none;
    arena.vector<std::byte>(shape.rows * bytes_per_row / (keeps_all ? 1 : 2));
  }
  bool can_recompute(nn::Recompute recompute) const override { return recomputes_ || recompute == nn::Recompute::none; }
  std::size_t scratch_bytes(const BatchShape& shape, ParameterStore::Purpose,
                            const TeamProcessor& processor) const override {
    return std::min(shape.samples, processor.threads) * scratch_;
  }
  void train(const nn::Pass&, const Batch&, float, const Vector<float>&) const override {}
  Matrix<float> predict(const nn::Pass&, const Batch&, const Vector<float>&) const override { return {}; }
  /// The operations are divided equally among the units. With recomputation, all units run forward again.
  std::vector<double> unit_flops(const BatchShape& shape, nn::Recompute recompute) const override {
    const double passes = recompute == nn::Recompute::none ? 1.0 : 4.0 / 3.0;
    const double all = passes * flops_per_row * static_cast<double>(shape.rows);
    return std::vector<double>(table_.units().size(), all / static_cast<double>(table_.units().size()));
  }

 private:
  static ParameterTable make_table(std::size_t units, std::size_t unit_size) {
    ParameterTable::Builder builder;
    for (std::size_t unit = 0; unit < units; ++unit) {
      builder.unit("unit" + std::to_string(unit)).tensor("weight" + std::to_string(unit), {unit_size}, {});
    }
    return builder.build();
  }

  ParameterTable table_;
  bool recomputes_;
  std::size_t scratch_;
};

class SizedEvaluation final : public Evaluation {
 public:
  explicit SizedEvaluation(const BatchShape& shape) : shape_(shape) {}
  std::size_t batches() const override { return 1; }
  BatchShape largest_batch() const override { return shape_; }
  void assemble(std::size_t, Batch&) const override {}
  void take(std::size_t, std::span<const float>, std::span<const float>) override {}
  Metrics score() override { return {}; }
  std::span<const MetricKind> kinds() const override { return {}; }

 private:
  BatchShape shape_;
};

using Batches = std::vector<std::vector<std::size_t>>;

/// A task with listed global batches. A sample's number is its number of rows.
class ListedTask final : public Task {
 public:
  explicit ListedTask(Batches batches, BatchShape evaluated = {}, std::size_t units = 1,
                      std::size_t unit_size = elements, bool recomputes = false, std::size_t scratch = 0)
      : model_(units, unit_size, recomputes, scratch), batches_(std::move(batches)) {
    if (evaluated.samples > 0) evaluation_ = std::make_unique<SizedEvaluation>(evaluated);
  }

  const nn::Model& model() const override { return model_; }
  void initial_values(const FileReader&, const TensorWriter&) const override {}
  std::size_t steps_per_epoch() const override { return batches_.size(); }
  std::vector<std::size_t> global_batch(std::size_t step) const override { return batches_[step % batches_.size()]; }
  std::size_t rows_of(std::size_t sample) const override { return sample; }
  double weight(std::span<const std::size_t> samples) const override { return static_cast<double>(samples.size()); }
  void assemble(std::size_t, std::span<const std::size_t>, std::span<const std::uint32_t>, Batch&) const override {}
  Evaluation* evaluation() const override { return evaluation_.get(); }
  void write_results(const std::filesystem::path&) const override {}
  const ModelExporter* exporter() const override { return nullptr; }

 private:
  SizedModel model_;
  Batches batches_;
  std::unique_ptr<SizedEvaluation> evaluation_;
};

inline constexpr std::size_t plenty = std::size_t{1} << 40;

}  // namespace mylos::train
