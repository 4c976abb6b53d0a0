#pragma once

#include "tests/small_models/forwarded_task.hpp"

#include <functional>
#include <memory>

/// A wrapper of a task, for tests that act between its batches or make it fail.
namespace mylos::small_models {

using Purpose = ParameterStore::Purpose;

/// Callbacks for tests. Each may be empty.
struct TaskObserver {
  std::function<void(const std::vector<BatchShape>& batches)> on_prepare = {};
  std::function<void()> on_training_batch = {};
  std::function<void(std::size_t index, Batch& batch)> on_evaluation_batch = {};  ///< after the batch was assembled
  std::function<void(const std::filesystem::path& directory)> on_export = {};
  std::function<void()> on_results = {};
};

/// Forwards to `model` and calls the observer. Both must outlive it.
class ObservedModel final : public nn::Model {
 public:
  ObservedModel(const nn::Model& model, const TaskObserver& observer) : model_(model), observer_(observer) {}

  const ParameterTable& table() const override { return model_.table(); }
  void plan(Arena& arena, const BatchShape& shape, Purpose purpose, nn::Recompute recompute) const override {
    model_.plan(arena, shape, purpose, recompute);
  }
  bool can_recompute(nn::Recompute recompute) const override { return model_.can_recompute(recompute); }
  void prepare(const ExecutionSpace& space, const BatchShapes& batches, Purpose purpose) const override;
  void train(const nn::Pass& pass, const Batch& batch, float scale, const Vector<float>& losses) const override {
    model_.train(pass, batch, scale, losses);
  }
  Matrix<float> predict(const nn::Pass& pass, const Batch& batch, const Vector<float>& losses) const override {
    return model_.predict(pass, batch, losses);
  }
  std::vector<GemmProduct> products(const BatchShape& shape, Purpose purpose) const override {
    return model_.products(shape, purpose);
  }
  std::size_t scratch_bytes(const BatchShape& shape, Purpose purpose, const TeamProcessor& processor) const override {
    return model_.scratch_bytes(shape, purpose, processor);
  }
  std::vector<double> unit_flops(const BatchShape& shape, nn::Recompute recompute) const override {
    return model_.unit_flops(shape, recompute);
  }

 private:
  const nn::Model& model_;
  const TaskObserver& observer_;
};

/// Forwards to `task` and calls the observer. Both must outlive it.
class ObservedTask final : public ForwardedTask<> {
 public:
  ObservedTask(train::Task& task, const TaskObserver& observer);

  const nn::Model& model() const override { return model_; }
  void assemble(std::size_t step, std::span<const std::size_t> samples, std::span<const std::uint32_t> ids,
                Batch& batch) const override;
  train::Evaluation* evaluation() const override { return evaluation_.get(); }
  void write_results(const std::filesystem::path& directory) const override;
  const train::ModelExporter* exporter() const override { return exporter_.get(); }

 private:
  const TaskObserver& observer_;
  ObservedModel model_;
  std::unique_ptr<train::Evaluation> evaluation_;
  std::unique_ptr<train::ModelExporter> exporter_;
};

}  // namespace mylos::small_models
