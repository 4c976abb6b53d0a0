#include "tests/small_models/convolution_classifier.hpp"

#include "core/base/error.hpp"
#include "core/kernels/cross_entropy.hpp"
#include "core/kernels/layer_norm.hpp"
#include "core/kernels/team.hpp"
#include "nn/head.hpp"
#include "nn/layers/linear.hpp"
#include "tests/small_models/batch_norm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

namespace mylos::small_models {
namespace {

using nn::Pass;
using Purpose = ParameterStore::Purpose;

/// The parameter tensors of a block. The convolution has no bias because BatchNorm would subtract it.
struct BlockRows {
  std::size_t unit = 0, gamma = 0, beta = 0, running_mean = 0, running_variance = 0;
  nn::Linear convolution;
};

/// One convolution and the layers that follow it.
struct Block {
  ImageSize image;   ///< size of its input and convolution
  ImageSize window;  ///< pooling window
  std::size_t divisor, in, out;
  BlockRows rows;
};

struct BlockActivations {
  Matrix<float> columns, convolved, normal;  ///< (T, 9 in), (T, out), (T, out)
  NormStatistics statistics;                 ///< (S, out)
  Matrix<float> pooled;                      ///< (T / window, out)
};

struct BlockWorkspace {
  Matrix<float> dnormal, dconvolved, dcolumns;  ///< same shapes as the activations
  NormStatistics sums;                          ///< (S, out)
};

struct ClassifierActivations {
  BlockActivations first, second;
  Matrix<float> logits;        ///< (N, classes)
  Vector<float> image_losses;  ///< (N)
  Vector<std::size_t> starts;  ///< (S+1) first image of each sample
};

struct ClassifierWorkspace {
  Matrix<float> dlogits, dsecond, dfirst;  ///< gradients of the logits and of both blocks' results
  BlockWorkspace first, second;
  Vector<float> column_sums;
};

void add_block(ParameterTable::Builder& builder, const std::string& name, std::size_t in, std::size_t out) {
  const float he = std::sqrt(2.0f / static_cast<float>(neighbours * in));
  builder.unit(name);
  builder.tensor(name + ".convolution.weight", {out, neighbours, in}, {Initializer::Kind::normal, he});
  builder.tensor(name + ".norm.weight", {out}, {Initializer::Kind::ones}, {.decay = false});
  builder.tensor(name + ".norm.bias", {out}, {Initializer::Kind::zeros}, {.decay = false});
  builder.state(name + ".norm.running_mean", {out}, {Initializer::Kind::zeros});
  builder.state(name + ".norm.running_var", {out}, {Initializer::Kind::ones});
}

BlockRows find_block(const ParameterTable& table, const std::string& name) {
  BlockRows rows;
  rows.convolution.weight = table.find(name + ".convolution.weight");
  rows.unit = table.tensor(rows.convolution.weight).unit;
  rows.gamma = table.find(name + ".norm.weight");
  rows.beta = table.find(name + ".norm.bias");
  rows.running_mean = table.find_state(name + ".norm.running_mean");
  rows.running_variance = table.find_state(name + ".norm.running_var");
  return rows;
}

ParameterTable make_table(const ClassifierShape& shape) {
  ParameterTable::Builder builder;
  add_block(builder, "first", 1, shape.first_channels);
  add_block(builder, "second", shape.first_channels, shape.second_channels);
  builder.unit("head");
  nn::add_linear_tensors(builder, "classifier", shape.second_channels, shape.classes,
                         {Initializer::Kind::normal, 0.1f});
  return builder.build();
}

/// Converts pixel offsets of samples to image offsets.
void count_images(const ExecutionSpace& space, const ConstVector<std::size_t>& pixel_starts, std::size_t pixels,
                  const Vector<std::size_t>& starts) {
  for_each_element(
      "mylos::small_models::count_images", space, starts.size(),
      KOKKOS_LAMBDA(std::size_t i) { starts(i) = pixel_starts(i) / pixels; });
}

class ConvolutionClassifier final : public nn::Model {
 public:
  explicit ConvolutionClassifier(const ClassifierShape& shape)
      : shape_(shape), table_(make_table(shape)), head_(nn::find_linear(table_, "classifier")) {
    const ImageSize half = shape.image.pooled(2);
    first_ = {shape.image, {2, 2}, 1, 1, shape.first_channels, find_block(table_, "first")};
    second_ = {half, half, 4, shape.first_channels, shape.second_channels, find_block(table_, "second")};
  }

  const ParameterTable& table() const override { return table_; }

  void plan(Arena& arena, const BatchShape& shape, Purpose purpose, nn::Recompute) const override {
    take_activations(arena, shape);
    if (purpose == Purpose::training) take_workspace(arena, shape);
  }

  void train(const Pass& pass, const Batch& batch, float scale, const Vector<float>& losses) const override;
  Matrix<float> predict(const Pass& pass, const Batch& batch, const Vector<float>& losses) const override;

  std::vector<double> unit_flops(const BatchShape& shape, nn::Recompute) const override {
    const auto block = [&](const Block& one) {
      return 6.0 * static_cast<double>(shape.rows * neighbours * one.in * one.out) / static_cast<double>(one.divisor);
    };
    const double images = static_cast<double>(shape.rows) / static_cast<double>(shape_.image.pixels());
    std::vector<double> flops(table_.units().size());
    flops[first_.rows.unit] = block(first_);
    flops[second_.rows.unit] = block(second_);
    flops[head_unit()] = 6.0 * images * static_cast<double>(second_.out * shape_.classes);
    return flops;
  }

 private:
  BlockActivations take_block(Arena& arena, const Block& block, const BatchShape& shape) const {
    const std::size_t rows = shape.rows / block.divisor;
    return {arena.matrix<float>(rows, neighbours * block.in), arena.matrix<float>(rows, block.out),
            arena.matrix<float>(rows, block.out), take_statistics(arena, shape.samples, block.out),
            arena.matrix<float>(rows / block.window.pixels(), block.out)};
  }
  ClassifierActivations take_activations(Arena& arena, const BatchShape& shape) const {
    const std::size_t images = shape.rows / shape_.image.pixels();
    return {take_block(arena, first_, shape), take_block(arena, second_, shape),
            arena.matrix<float>(images, shape_.classes), arena.vector<float>(images),
            arena.vector<std::size_t>(shape.samples + 1)};
  }
  BlockWorkspace take_block_workspace(Arena& arena, const Block& block, const BatchShape& shape) const {
    const std::size_t rows = shape.rows / block.divisor;
    return {arena.matrix<float>(rows, block.out), arena.matrix<float>(rows, block.out),
            arena.matrix<float>(rows, neighbours * block.in), take_statistics(arena, shape.samples, block.out)};
  }
  ClassifierWorkspace take_workspace(Arena& arena, const BatchShape& shape) const {
    const std::size_t images = shape.rows / shape_.image.pixels();
    return {arena.matrix<float>(images, shape_.classes),
            arena.matrix<float>(images, second_.out),
            arena.matrix<float>(shape.rows / second_.divisor, first_.out),
            take_block_workspace(arena, first_, shape),
            take_block_workspace(arena, second_, shape),
            arena.vector<float>(column_sum_workspace(images, shape_.classes))};
  }

  void forward(const Pass& pass, const Batch& batch, Purpose purpose, const ClassifierActivations& saved) const;
  void forward_block(const Pass& pass, const Batch& batch, Purpose purpose, const Block& block,
                     const ConstMatrix<float>& input, const BlockActivations& saved) const;
  /// Computes parameter gradients and work.dconvolved.
  void backward_block(const Pass& pass, const Batch& batch, const Block& block, const BlockActivations& saved,
                      const ConstMatrix<float>& dpooled, const BlockWorkspace& work) const;
  void loss(const Pass& pass, const Batch& batch, float scale, const ClassifierActivations& saved,
            const Vector<float>& losses, const Matrix<float>& dlogits) const;

  NormParameters norm_parameters(const Pass& pass, const Block& block) const {
    return {pass.parameters.values<float>(block.rows.gamma), pass.parameters.values<float>(block.rows.beta)};
  }
  static NormStatistics running(const Pass& pass, const Block& block) {
    return {as_matrix(pass.parameters.state(block.rows.running_mean), 1, block.out),
            as_matrix(pass.parameters.state(block.rows.running_variance), 1, block.out)};
  }
  std::size_t observed_column(std::size_t state) const {
    const ParameterTensor& row = table_.state_tensors()[state];
    return table_.observed_offset(row.unit) + row.offset;
  }
  static NormGroups groups(const Batch& batch, const Block& block) {
    return {batch.sample_starts(), batch.samples_of_rows(), block.divisor};
  }
  std::size_t head_unit() const { return table_.tensor(head_.weight).unit; }

  ClassifierShape shape_;
  ParameterTable table_;
  nn::Linear head_;
  Block first_, second_;
};

void ConvolutionClassifier::forward_block(const Pass& pass, const Batch& batch, Purpose purpose, const Block& block,
                                          const ConstMatrix<float>& input, const BlockActivations& saved) const {
  const NormGroups images = groups(batch, block);
  NormStatistics statistics = running(pass, block);
  pass.hooks.acquire(block.rows.unit);
  gather_neighbours(pass.space, block.image, input, saved.columns);
  nn::linear_without_bias<float>(pass, block.rows.convolution, saved.columns, saved.convolved);
  if (purpose == Purpose::training) {
    group_statistics(pass.space, images, saved.convolved, saved.statistics);
    if (pass.observed.size() > 0) {
      observe_statistics(pass.space, images, saved.statistics, pass.observed, observed_column(block.rows.running_mean),
                         observed_column(block.rows.running_variance));
    }
    statistics = saved.statistics;
  }
  normalize_relu(pass.space, images, statistics, norm_parameters(pass, block), saved.convolved, saved.normal);
  average_pool(pass.space, block.image, block.window, saved.normal, saved.pooled);
  pass.hooks.release(block.rows.unit);
}

void ConvolutionClassifier::forward(const Pass& pass, const Batch& batch, Purpose purpose,
                                    const ClassifierActivations& saved) const {
  require(batch.shape().rows % shape_.image.pixels() == 0,
          fmt::format("classifier: {} pixels are no whole number of {} x {} images", batch.shape().rows,
                      shape_.image.height, shape_.image.width));
  const ConstVector<float> pixels = batch.floats(images::pixels);
  forward_block(pass, batch, purpose, first_, ConstMatrix<float>(pixels.data(), pixels.size(), 1), saved.first);
  forward_block(pass, batch, purpose, second_, saved.first.pooled, saved.second);
  pass.hooks.acquire(head_unit());
  nn::linear_forward<float>(pass, head_, saved.second.pooled, saved.logits);
}

void ConvolutionClassifier::loss(const Pass& pass, const Batch& batch, float scale, const ClassifierActivations& saved,
                                 const Vector<float>& losses, const Matrix<float>& dlogits) const {
  cross_entropy<float>(pass.space, saved.logits, batch.integers(images::classes), scale, saved.image_losses, dlogits,
                       0.0f, pass.loss_scale);
  count_images(pass.space, batch.sample_starts(), shape_.image.pixels(), saved.starts);
  nn::sum_sample_losses(pass.space, saved.starts, saved.image_losses, losses);
}

void ConvolutionClassifier::backward_block(const Pass& pass, const Batch& batch, const Block& block,
                                           const BlockActivations& saved, const ConstMatrix<float>& dpooled,
                                           const BlockWorkspace& work) const {
  average_pool_backward(pass.space, block.image, block.window, dpooled, work.dnormal);
  normalize_relu_backward(pass.space, groups(batch, block), saved.statistics, norm_parameters(pass, block),
                          saved.convolved, saved.normal, work.dnormal, work.dconvolved,
                          pass.parameters.gradient(block.rows.gamma), pass.parameters.gradient(block.rows.beta),
                          work.sums);
  nn::linear_weight_gradient<float>(pass, block.rows.convolution, saved.columns, work.dconvolved);
}

void ConvolutionClassifier::train(const Pass& pass, const Batch& batch, float scale,
                                  const Vector<float>& losses) const {
  pass.arena.rewind(0);
  const ClassifierActivations saved = take_activations(pass.arena, batch.shape());
  const ClassifierWorkspace work = take_workspace(pass.arena, batch.shape());
  forward(pass, batch, Purpose::training, saved);
  loss(pass, batch, scale, saved, losses, work.dlogits);

  nn::linear_gradients<float>(pass, head_, saved.second.pooled, work.dlogits, work.column_sums);
  nn::linear_input_gradient<float>(pass, head_, work.dlogits, 0.0f, work.dsecond);
  pass.hooks.release(head_unit());
  pass.hooks.gradients_ready(head_unit());

  pass.hooks.acquire(second_.rows.unit);
  backward_block(pass, batch, second_, saved.second, work.dsecond, work.second);
  nn::linear_input_gradient<float>(pass, second_.rows.convolution, work.second.dconvolved, 0.0f, work.second.dcolumns);
  gather_neighbours_backward(pass.space, second_.image, work.second.dcolumns, work.dfirst);
  pass.hooks.release(second_.rows.unit);
  pass.hooks.gradients_ready(second_.rows.unit);

  pass.hooks.acquire(first_.rows.unit);
  backward_block(pass, batch, first_, saved.first, work.dfirst, work.first);
  pass.hooks.release(first_.rows.unit);
  pass.hooks.gradients_ready(first_.rows.unit);
}

Matrix<float> ConvolutionClassifier::predict(const Pass& pass, const Batch& batch, const Vector<float>& losses) const {
  pass.arena.rewind(0);
  const ClassifierActivations saved = take_activations(pass.arena, batch.shape());
  forward(pass, batch, Purpose::inference, saved);
  pass.hooks.release(head_unit());
  if (losses.size() > 0) loss(pass, batch, 0.0f, saved, losses, {});
  return saved.logits;
}

}  // namespace

std::unique_ptr<nn::Model> make_convolution_classifier(const ClassifierShape& shape) {
  require(shape.image.height % 2 == 0 && shape.image.width % 2 == 0,
          fmt::format("classifier: images of {} x {} cannot be pooled by 2", shape.image.height, shape.image.width));
  return std::make_unique<ConvolutionClassifier>(shape);
}

}  // namespace mylos::small_models
