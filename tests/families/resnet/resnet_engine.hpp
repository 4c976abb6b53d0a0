#pragma once

#include "core/kernels/products/gemm.hpp"
#include "families/resnet/resnet_model.hpp"
#include "nn/optimizer.hpp"
#include "parallel/sharding/sharding_strategy.hpp"
#include "train/engine/loop/training_step.hpp"
#include "train/engine/task.hpp"

#include <filesystem>
#include <string>
#include <vector>

/// ResNets recorded from PyTorch, and an engine for one of them.
namespace mylos::tests {

/// Images of the same size in NHWC, as floats, or as bytes if `values` is empty.
struct LabelledImages {
  std::size_t size = 0;  ///< values per image
  std::vector<float> values;
  std::vector<std::uint8_t> bytes;
  std::vector<std::int32_t> labels;

  /// Creates the batch of these groups of images.
  void fill(std::span<const std::vector<std::size_t>> groups, std::span<const std::uint32_t> ids, Batch& batch) const;
};

/// Reads the pixel_values of a recorded batch, which are NCHW in the file, and its labels.
LabelledImages read_recorded_images(const std::filesystem::path& batch_file);
/// Reads MNIST's training images as bytes.
LabelledImages read_digits();

struct RecordedResnet {
  families::ResnetShape shape;
  families::ResnetHead head;
};

/// Returns the model described by config.json, for images of this size.
RecordedResnet read_resnet(const std::filesystem::path& config, std::size_t height, std::size_t width);
/// Returns the model in a recorded folder, with the image size of its batch.
RecordedResnet recorded_resnet(const std::filesystem::path& folder);

/// Reads a tensor from a file, optionally with `prefix` before its name, in the layout of the table.
std::vector<float> read_resnet_tensor(const std::filesystem::path& file, const ParameterTensor& row,
                                      const std::string& prefix = "");

/// Trains on the groups of images that `steps` lists for each step.
class RecordedResnetTask final : public train::Task {
 public:
  using Groups = std::vector<std::vector<std::size_t>>;

  RecordedResnetTask(const RecordedResnet& resnet, Precision precision, std::filesystem::path weights,
                     LabelledImages images, std::vector<Groups> steps);

  const nn::Model& model() const override { return *model_; }
  void initial_values(const FileReader&, const train::TensorWriter& write) const override;
  std::size_t steps_per_epoch() const override { return steps_.size(); }
  /// The samples are the groups of all steps, one after the other.
  std::vector<std::size_t> global_batch(std::size_t step) const override;
  std::size_t rows_of(std::size_t sample) const override { return groups_[sample].size(); }
  double weight(std::span<const std::size_t> samples) const override;
  void assemble(std::size_t step, std::span<const std::size_t> samples, std::span<const std::uint32_t> ids,
                Batch& batch) const override;
  train::Evaluation* evaluation() const override { return nullptr; }
  void write_results(const std::filesystem::path&) const override {}
  const train::ModelExporter* exporter() const override { return nullptr; }

  /// The largest batch of a step, and all groups of the first step.
  BatchShape shape() const;
  void fill_first(Batch& batch) const;

 private:
  std::filesystem::path weights_;
  LabelledImages images_;
  std::vector<Groups> steps_;
  Groups groups_;
  std::unique_ptr<nn::Model> model_;
};

/// Everything a training step needs, with weights from a file and SGD with the recorded settings.
struct ResnetEngine {
  ResnetEngine(RecordedResnetTask trained, const std::string& provider, Precision precision = Precision::float32,
               nn::Recompute recomputed = nn::Recompute::none);

  nn::Pass pass() {
    nn::Pass pass{space, gemm, store, strategy->hooks(), arena};
    pass.recompute = recompute;
    return pass;
  }
  train::StepContext context() { return {task, store, *strategy, *optimizer, gemm, arena, *ranks, recompute}; }
  /// Reads momentum from a file, in which its names are "momentum." + the tensor's name.
  void read_momentum(const std::filesystem::path& file);
  void write_state(std::size_t state_row, std::span<const float> values);

  RecordedResnetTask task;
  nn::Recompute recompute;
  ExecutionSpace space;
  Gemm gemm;
  std::unique_ptr<parallel::Communicator> ranks = parallel::make_self_communicator();
  ParameterStore store;
  std::unique_ptr<parallel::ShardingStrategy> strategy;
  std::unique_ptr<nn::Optimizer> optimizer;
  Arena arena;
};

}  // namespace mylos::tests
