#pragma once

#include "core/kernels/gemm.hpp"
#include "nn/optimizer.hpp"
#include "nn/resnet/resnet.hpp"
#include "parallel/sharding/sharding_strategy.hpp"
#include "train/engine/task.hpp"
#include "train/engine/training_step.hpp"

#include <filesystem>
#include <string>
#include <vector>

/// ResNets recorded from PyTorch, and an engine that holds one.
namespace mylos::tests {

/// Images of one size, in NHWC: as floats, or as bytes where there are no floats.
struct LabelledImages {
  std::size_t size = 0;  ///< values of an image
  std::vector<float> values;
  std::vector<std::uint8_t> bytes;
  std::vector<std::int32_t> labels;

  /// The batch of groups of these images.
  void fill(std::span<const std::vector<std::size_t>> groups, std::span<const std::uint32_t> ids, Batch& batch) const;
};

/// The pixel_values, which files have in NCHW, and labels of a recorded batch.
LabelledImages read_recorded_images(const std::filesystem::path& batch_file);
/// MNIST's training images, as bytes.
LabelledImages read_digits();

/// What config.json says, for images of this size.
nn::ResnetShape read_resnet_shape(const std::filesystem::path& config, std::size_t height, std::size_t width);
/// That of a recorded folder, with the size of its batch's images.
nn::ResnetShape recorded_resnet_shape(const std::filesystem::path& folder);

/// A row's values of a file, or those called `prefix` + its name, in the order that the table has them in.
std::vector<float> read_resnet_row(const std::filesystem::path& file, const ParameterTensor& row,
                                   const std::string& prefix = "");

/// Trains on the groups of images that `steps` names for each step.
class RecordedResnetTask final : public train::Task {
 public:
  using Groups = std::vector<std::vector<std::size_t>>;

  RecordedResnetTask(const nn::ResnetShape& shape, Precision precision, std::filesystem::path weights,
                     LabelledImages images, std::vector<Groups> steps);

  const nn::Model& model() const override { return *model_; }
  void initial_values(const train::TensorWriter& write) const override;
  std::size_t steps_per_epoch() const override { return steps_.size(); }
  /// Samples are the groups of all steps, one after the other.
  std::vector<std::size_t> global_batch(std::size_t step) const override;
  std::size_t rows_of(std::size_t sample) const override { return groups_[sample].size(); }
  double weight(std::span<const std::size_t> samples) const override;
  void assemble(std::size_t step, std::span<const std::size_t> samples, std::span<const std::uint32_t> ids,
                Batch& batch) const override;
  train::Evaluation* evaluation() const override { return nullptr; }
  void write_results(const std::filesystem::path&) const override {}
  std::unique_ptr<train::ModelExport> start_export(const std::filesystem::path&) const override { return nullptr; }

  /// The largest batch of a step, and all groups of the first one.
  BatchShape shape() const;
  void fill_first(Batch& batch) const;

 private:
  std::filesystem::path weights_;
  LabelledImages images_;
  std::vector<Groups> steps_;
  Groups groups_;
  std::unique_ptr<nn::Model> model_;
};

/// All that steps need, with the weights of a file; SGD as it was recorded.
struct ResnetEngine {
  ResnetEngine(RecordedResnetTask trained, const std::string& provider, Precision precision = Precision::float32,
               nn::Recompute recomputed = nn::Recompute::none);

  nn::Pass pass() {
    nn::Pass pass{space, gemm, store, mode->hooks(), arena};
    pass.recompute = recompute;
    return pass;
  }
  train::StepContext context() { return {task, store, *mode, *optimizer, gemm, arena, *ranks, recompute}; }
  /// Momentum from a file that names it "momentum." + row.
  void read_momentum(const std::filesystem::path& file);
  void write_state(std::size_t state_row, std::span<const float> values);

  RecordedResnetTask task;
  nn::Recompute recompute;
  ExecutionSpace space;
  Gemm gemm;
  std::unique_ptr<parallel::Communicator> ranks = parallel::make_self_communicator();
  ParameterStore store;
  std::unique_ptr<parallel::ShardingStrategy> mode;
  std::unique_ptr<nn::Optimizer> optimizer;
  Arena arena;
};

}  // namespace mylos::tests
