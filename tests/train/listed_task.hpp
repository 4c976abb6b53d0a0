#pragma once

#include "train/task.hpp"

#include <filesystem>
#include <span>
#include <utility>
#include <vector>

/// A model and a task that are nothing but their sizes.
namespace mylos::train {

inline constexpr std::size_t elements = 1000;
inline constexpr std::size_t bytes_per_row = 1024;  // of training; a multiple of the arena's alignment

/// Takes 1 KiB a row for training and half of it for inference.
class SizedModel final : public nn::Model {
 public:
  SizedModel() : table_(ParameterTable::Builder().unit("all").row("weight", {elements}, {}).build()) {}

  const ParameterTable& table() const override { return table_; }
  void plan(Arena& arena, const BatchShape& shape, ParameterStore::Purpose purpose, nn::Recompute) const override {
    const bool training = purpose == ParameterStore::Purpose::training;
    arena.vector<std::byte>(shape.rows * bytes_per_row / (training ? 1 : 2));
  }
  void train(const nn::Pass&, const Batch&, float, const Vector<float>&) const override {}
  Matrix<float> predict(const nn::Pass&, const Batch&, const Vector<float>&) const override { return {}; }
  double training_flops(const BatchShape&) const override { return 0.0; }

 private:
  ParameterTable table_;
};

using Batches = std::vector<std::vector<std::size_t>>;

/// Global batches that are written down: each sample's number is its rows.
class ListedTask final : public Task {
 public:
  explicit ListedTask(Batches batches, BatchShape evaluated = {})
      : batches_(std::move(batches)), evaluated_(evaluated) {}

  const nn::Model& model() const override { return model_; }
  void initial_values(const RowWriter&) const override {}
  std::size_t steps_per_epoch() const override { return batches_.size(); }
  std::vector<std::size_t> global_batch(std::size_t step) const override { return batches_[step % batches_.size()]; }
  std::size_t rows_of(std::size_t sample) const override { return sample; }
  double weight(std::span<const std::size_t> samples) const override { return static_cast<double>(samples.size()); }
  void assemble(std::span<const std::size_t>, std::span<const std::uint32_t>, Batch&) const override {}
  BatchShape evaluation_shape() const override { return evaluated_; }
  Metrics evaluate(Predictor&) override { return {}; }
  void write_results(const std::filesystem::path&) const override {}
  void export_model(const std::filesystem::path&, const RowReader&) const override {}

 private:
  SizedModel model_;
  Batches batches_;
  BatchShape evaluated_;
};

inline constexpr std::size_t plenty = std::size_t{1} << 40;

}  // namespace mylos::train
