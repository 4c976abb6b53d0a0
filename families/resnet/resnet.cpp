#include "families/resnet/resnet.hpp"

#include "core/base/error.hpp"
#include "core/element_type.hpp"
#include "core/kernels/activation.hpp"
#include "core/kernels/cross_entropy.hpp"
#include "core/kernels/layer_norm.hpp"
#include "core/kernels/pixels.hpp"
#include "core/kernels/pooling.hpp"
#include "families/resnet/resnet_block.hpp"
#include "families/resnet/resnet_memory.hpp"
#include "nn/layers/linear.hpp"
#include "nn/vocabulary_loss.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace mylos::families {
namespace {

using Purpose = ParameterStore::Purpose;

constexpr const char* stem_name = "resnet.embedder.embedder";
constexpr const char* head_name = "classifier.1";

std::string unit_name(std::size_t stage, std::size_t block) { return fmt::format("stages.{}.layers.{}", stage, block); }
std::string rows_name(std::size_t stage, std::size_t block) { return "resnet.encoder." + unit_name(stage, block); }

ParameterTable make_resnet_table(const ResnetShape& shape) {
  check_shape(shape);
  ParameterTable::Builder builder;
  builder.unit("stem");
  add_convolution_norm_rows(builder, stem_name, stem_convolution(shape));
  const auto stages = resnet_stages(shape);
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    for (std::size_t block = 0; block < stages[stage].size(); ++block) {
      builder.unit(unit_name(stage, block));
      ResnetBlock<float>::add_rows(builder, rows_name(stage, block), stages[stage][block]);
    }
  }
  builder.unit("head");
  const std::size_t in = shape.hidden.back();
  const Initializer uniform{Initializer::Kind::uniform, 1.0f / std::sqrt(static_cast<float>(in))};
  builder.tensor(std::string(head_name) + ".weight", {shape.labels, in}, uniform);
  builder.tensor(std::string(head_name) + ".bias", {shape.labels}, uniform, {.decay = false});
  return builder.build();
}

template <class T>
class Resnet final : public nn::Model {
 public:
  explicit Resnet(const ResnetShape& shape)
      : shape_(shape),
        table_(make_resnet_table(shape)),
        stem_(find_convolution_norm(table_, stem_name, stem_convolution(shape))),
        head_(nn::find_linear(table_, head_name)) {
    const auto stages = resnet_stages(shape);
    for (std::size_t stage = 0; stage < stages.size(); ++stage) {
      for (std::size_t block = 0; block < stages[stage].size(); ++block) {
        blocks_.emplace_back(table_, rows_name(stage, block), stages[stage][block]);
        stages_.push_back(stage);
      }
    }
  }

  const ParameterTable& table() const override { return table_; }
  void plan(Arena& arena, const BatchShape& shape, Purpose purpose, nn::Recompute recompute) const override {
    take_memory(arena, shape, purpose, recompute);
  }
  bool can_recompute(nn::Recompute recompute) const override { return recompute != nn::Recompute::attention; }
  std::vector<GemmProduct> products(const BatchShape& shape, Purpose purpose) const override;
  void train(const nn::Pass& pass, const Batch& batch, float scale, const Vector<float>& losses) const override;
  Matrix<float> predict(const nn::Pass& pass, const Batch& batch, const Vector<float>& losses) const override;
  std::vector<double> unit_flops(const BatchShape& shape, nn::Recompute recompute) const override;

 private:
  /// Memory for the two parts of the gradients of a stage.
  struct GradientMemory {
    T *first, *second;
  };
  struct Memory {
    Matrix<T> pixels;  ///< (T H W, C)
    ConvolutionNormSaved<T> stem;
    Matrix<T> stem_inner, stem_y;
    Matrix<std::uint8_t> taken;  ///< position of the maximum in each pooling window
    std::vector<ResnetBlockMemory<T>> blocks;
    std::vector<GradientMemory> stages;
    Matrix<T> mean;  ///< (T, channels), mean over the last block's pixels
    Vector<float> bias;
    Matrix<float> logits;
    Vector<float> image_losses, image_hits;
    Matrix<T> dlogits, dmean;
    Vector<float> column_sums, norm_workspace;
  };

  Memory take_memory(Arena& arena, const BatchShape& shape, Purpose purpose, nn::Recompute recompute) const;
  void take_head(Arena& arena, std::size_t images, Purpose purpose, Memory& memory) const;
  std::size_t norm_workspace(const BatchShape& shape) const;

  ImagesPass images_of(const nn::Pass& pass, const Batch& batch, Purpose purpose, const Memory& memory) const;
  void load_pixels(const nn::Pass& pass, const Batch& batch, const Memory& memory) const;
  void stem_forward(const ImagesPass& images, const Memory& memory) const;
  void stem_backward(const ImagesPass& images, const Memory& memory, const GradientSum<T>& gradient) const;
  /// Runs the forward pass. The head's unit stays acquired.
  void forward(const ImagesPass& images, const Batch& batch, const Memory& memory) const;
  void backward(const ImagesPass& images, const Memory& memory) const;
  GradientSum<T> head_backward(const ImagesPass& images, const Memory& memory) const;
  void loss(const nn::Pass& pass, const Batch& batch, float scale, const Memory& memory, const Vector<float>& losses,
            const Matrix<T>& dlogits) const;

  const Matrix<T>& input_of(std::size_t block, const Memory& memory) const {
    return block == 0 ? memory.stem_y : memory.blocks[block - 1].y;
  }
  bool pools() const { return shape_.stem == ResnetShape::Stem::imagenet; }
  PoolingShape pooling() const { return {stem_.shape().out_height(), stem_.shape().out_width()}; }
  std::size_t stem_unit() const { return table_.tensor(stem_.convolution.weight).unit; }
  std::size_t head_unit() const { return table_.tensor(head_.weight).unit; }

  ResnetShape shape_;
  ParameterTable table_;
  ConvolutionNorm stem_;
  std::vector<ResnetBlock<T>> blocks_;
  std::vector<std::size_t> stages_;  ///< stage of each block
  nn::Linear head_;
};

/// Creates the arrays of a pass from slots.
template <class T>
struct SlotArrays {
  Arena& arena;
  Vector<T> memory;
  std::size_t images, groups;

  T* at(const ArenaSlot& slot) const { return memory.data() + slot.offset * images; }
  Matrix<T> result(const ConvolutionShape& shape, const ArenaSlot& slot) const {
    return Matrix<T>(at(slot), images * shape.out_pixels(), shape.out);
  }
  ConvolutionNormSaved<T> saved(const ConvolutionNorm& layer, const ArenaSlot& slot) const {
    const std::size_t channels = layer.shape().out;
    return {result(layer.shape(), slot),
            {arena.matrix<float>(groups, channels), arena.matrix<float>(groups, channels)}};
  }
  ResnetBlockMemory<T> block(const ResnetBlock<T>& block, const ResnetBlockSlots& slots) const {
    ResnetBlockMemory<T> memory_of_block;
    const std::vector<ConvolutionNorm>& layers = block.layers();
    for (std::size_t i = 0; i < layers.size(); ++i) {
      memory_of_block.layers.push_back(saved(layers[i], slots.layers[i]));
      if (i + 1 < layers.size()) memory_of_block.inner.push_back(result(layers[i].shape(), slots.inner[i]));
    }
    if (block.shortcut()) memory_of_block.shortcut = saved(*block.shortcut(), slots.shortcut);
    memory_of_block.y = result(layers.back().shape(), slots.y);
    return memory_of_block;
  }
};

template <class T>
typename Resnet<T>::Memory Resnet<T>::take_memory(Arena& arena, const BatchShape& shape, Purpose purpose,
                                                  nn::Recompute recompute) const {
  const bool trains = purpose == Purpose::training;
  const ResnetSlots slots = trains ? training_slots(shape_, recompute) : prediction_slots(shape_);
  const std::size_t images = shape.rows, stem_rows = images * stem_pixels(shape_);
  const SlotArrays<T> arrays{arena, arena.vector<T>(slots.size * images), images, trains ? shape.samples : 1};
  Memory memory{};
  memory.pixels = Matrix<T>(arrays.at(slots.pixels), images * shape_.pixels(), shape_.channels);
  memory.stem = arrays.saved(stem_, slots.stem);
  memory.stem_inner = pools() ? arrays.result(stem_.shape(), slots.stem_inner) : memory.stem.result;
  memory.stem_y = Matrix<T>(arrays.at(slots.stem_y), stem_rows, shape_.embedding);
  if (pools() && trains) memory.taken = arena.matrix<std::uint8_t>(stem_rows, shape_.embedding);
  for (std::size_t block = 0; block < blocks_.size(); ++block) {
    memory.blocks.push_back(arrays.block(blocks_[block], slots.blocks[block]));
  }
  for (const GradientSlots& stage : slots.stages) {
    memory.stages.push_back({arrays.at(stage.first), arrays.at(stage.second)});
  }
  if (trains) memory.norm_workspace = arena.vector<float>(norm_workspace(shape));
  take_head(arena, images, purpose, memory);
  return memory;
}

template <class T>
void Resnet<T>::take_head(Arena& arena, std::size_t images, Purpose purpose, Memory& memory) const {
  const std::size_t channels = shape_.hidden.back();
  memory.mean = arena.matrix<T>(images, channels);
  memory.bias = arena.vector<float>(shape_.labels);
  memory.logits = arena.matrix<float>(images, shape_.labels);
  memory.image_losses = arena.vector<float>(images);
  if (purpose == Purpose::inference) return;
  memory.image_hits = arena.vector<float>(images);
  memory.dlogits = arena.matrix<T>(images, shape_.labels);
  memory.dmean = arena.matrix<T>(images, channels);
  memory.column_sums = arena.vector<float>(column_sum_workspace(images, shape_.labels));
}

template <class T>
std::size_t Resnet<T>::norm_workspace(const BatchShape& shape) const {
  std::size_t largest = 0;
  const auto add = [&](const ConvolutionNorm& layer) {
    largest = std::max(largest,
                       batch_norm_workspace(shape.samples, shape.rows, layer.shape().out_pixels(), layer.shape().out));
  };
  add(stem_);
  for (const ResnetBlock<T>& block : blocks_) {
    for (const ConvolutionNorm& layer : block.layers()) add(layer);
    if (block.shortcut()) add(*block.shortcut());
  }
  return largest;
}

template <class T>
ImagesPass Resnet<T>::images_of(const nn::Pass& pass, const Batch& batch, Purpose purpose, const Memory& memory) const {
  return {pass, batch.sample_starts(), batch.samples_of_rows(), purpose, memory.norm_workspace};
}

template <class T>
void Resnet<T>::load_pixels(const nn::Pass& pass, const Batch& batch, const Memory& memory) const {
  const auto check = [&](const char* name, std::size_t size) {
    require(size == memory.pixels.size(),
            fmt::format("ResNet: {} has {} values for {} images of {} x {} x {}", name, size, batch.shape().rows,
                        shape_.height, shape_.width, shape_.channels));
  };
  if (batch.has(images::pixel_values)) {
    const ConstVector<float> values = batch.floats(images::pixel_values);
    check(images::pixel_values, values.size());
    return convert<float, T>(pass.space, values, Vector<T>(memory.pixels.data(), memory.pixels.size()));
  }
  const ConstVector<std::uint8_t> bytes = batch.bytes(images::pixels);
  check(images::pixels, bytes.size());
  normalize_pixels<T>(pass.space, pixel_normalization(shape_), bytes, memory.pixels);
}

template <class T>
void Resnet<T>::stem_forward(const ImagesPass& images, const Memory& memory) const {
  const ExecutionSpace& space = images.pass.space;
  convolution_norm_forward<T>(images, stem_, memory.pixels, memory.stem);
  const Matrix<T>& normal = pools() ? memory.stem_inner : memory.stem_y;
  batch_norm_relu<T>(space, images.groups(stem_), normalization_of(images, stem_, memory.stem), normal);
  if (pools()) max_pool<T>(space, pooling(), normal, memory.stem_y, memory.taken);
}

template <class T>
void Resnet<T>::stem_backward(const ImagesPass& images, const Memory& memory, const GradientSum<T>& gradient) const {
  const ExecutionSpace& space = images.pass.space;
  if (images.pass.recompute == nn::Recompute::layer) {
    nn::convolution_forward<T>(images.pass, stem_.convolution, memory.pixels, memory.stem.result);
  }
  GradientSum<T> of_stem = gradient;
  if (pools()) {
    max_pool_backward<T>(space, pooling(), memory.taken, gradient.dy, gradient.also, memory.stem_inner);
    of_stem = {memory.stem_inner, {}};
  }
  batch_norm_relu_backward<T>(space, images.groups(stem_), normalization_of(images, stem_, memory.stem), of_stem.dy,
                              of_stem.also, memory.stem.result, norm_gradients(images, stem_), images.norm_workspace);
  nn::convolution_weight_gradient<T>(images.pass, stem_.convolution, memory.pixels, memory.stem.result);
}

template <class T>
void Resnet<T>::forward(const ImagesPass& images, const Batch& batch, const Memory& memory) const {
  const nn::Pass& pass = images.pass;
  pass.hooks.acquire(stem_unit());
  load_pixels(pass, batch, memory);
  stem_forward(images, memory);
  pass.hooks.release(stem_unit());
  for (std::size_t block = 0; block < blocks_.size(); ++block) {
    pass.hooks.acquire(blocks_[block].unit());
    blocks_[block].forward(images, input_of(block, memory), memory.blocks[block]);
    pass.hooks.release(blocks_[block].unit());
  }
  pass.hooks.acquire(head_unit());
  average_pool<T>(pass.space, input_of(blocks_.size(), memory), memory.mean);
  convert<T, float>(pass.space, pass.parameters.values<T>(head_.bias), memory.bias);
  const Epilogue<float> add_bias{EpilogueKind::bias, memory.bias, {}};
  pass.gemm.operator()<T, float>(pass.space, Transpose::no, memory.mean, Transpose::yes,
                                 pass.parameters.matrix<T>(head_.weight), 0.0f, memory.logits, add_bias);
}

template <class T>
void Resnet<T>::loss(const nn::Pass& pass, const Batch& batch, float scale, const Memory& memory,
                     const Vector<float>& losses, const Matrix<T>& dlogits) const {
  cross_entropy<T>(pass.space, memory.logits, batch.integers(images::labels), scale, memory.image_losses, dlogits,
                   shape_.label_smoothing, pass.loss_scale, memory.image_hits);
  nn::sum_sample_losses(pass.space, batch.sample_starts(), memory.image_losses, losses, memory.image_hits, pass.hits);
}

template <class T>
GradientSum<T> Resnet<T>::head_backward(const ImagesPass& images, const Memory& memory) const {
  const nn::Pass& pass = images.pass;
  nn::linear_gradients<T>(pass, head_, memory.mean, memory.dlogits, memory.column_sums);
  nn::linear_input_gradient<T>(pass, head_, memory.dlogits, 0.0f, memory.dmean);
  const Matrix<T>& y = memory.blocks.back().y;
  const Matrix<T> dy(memory.stages.back().first, y.extent(0), y.extent(1));
  average_pool_backward<T>(pass.space, memory.dmean, dy);
  pass.hooks.release(head_unit());
  pass.hooks.gradients_ready(head_unit());
  return {dy, {}};
}

template <class T>
void Resnet<T>::backward(const ImagesPass& images, const Memory& memory) const {
  const nn::Pass& pass = images.pass;
  GradientSum<T> gradient = head_backward(images, memory);
  for (std::size_t block = blocks_.size(); block-- > 0;) {
    const ResnetBlock<T>& unit = blocks_[block];
    pass.hooks.acquire(unit.unit());
    // The shared buffers still hold the last block's results, so only the other blocks need recomputation.
    if (pass.recompute == nn::Recompute::layer && block + 1 < blocks_.size()) {
      unit.restore(images, input_of(block, memory), memory.blocks[block]);
    }
    const GradientMemory& own = memory.stages[stages_[block]];
    const GradientMemory& before = memory.stages[block == 0 ? 0 : stages_[block - 1]];
    const bool moves = before.first != own.first;
    // Within a stage the two parts swap slots: the second slot is free first.
    const bool is_turned = gradient.dy.data() == own.second;
    T* const free = is_turned ? own.first : own.second;
    gradient = unit.backward(images, input_of(block, memory), memory.blocks[block], gradient,
                             moves ? GradientTargets<T>{free, before.first, before.second}
                                   : GradientTargets<T>{free, free, gradient.dy.data()});
    pass.hooks.release(unit.unit());
    pass.hooks.gradients_ready(unit.unit());
  }
  pass.hooks.acquire(stem_unit());
  stem_backward(images, memory, gradient);
  pass.hooks.release(stem_unit());
  pass.hooks.gradients_ready(stem_unit());
}

template <class T>
void Resnet<T>::train(const nn::Pass& pass, const Batch& batch, float scale, const Vector<float>& losses) const {
  pass.arena.rewind(0);
  const Memory memory = take_memory(pass.arena, batch.shape(), Purpose::training, pass.recompute);
  const ImagesPass images = images_of(pass, batch, Purpose::training, memory);
  forward(images, batch, memory);
  loss(pass, batch, scale, memory, losses, memory.dlogits);
  backward(images, memory);
}

template <class T>
Matrix<float> Resnet<T>::predict(const nn::Pass& pass, const Batch& batch, const Vector<float>& losses) const {
  pass.arena.rewind(0);
  const Memory memory = take_memory(pass.arena, batch.shape(), Purpose::inference, nn::Recompute::none);
  forward(images_of(pass, batch, Purpose::inference, memory), batch, memory);
  pass.hooks.release(head_unit());
  if (losses.extent(0) > 0) loss(pass, batch, 0.0f, memory, losses, {});
  return memory.logits;
}

/// Appends products to `all`; for a product that is already there, the count is increased.
void add_products(std::vector<GemmProduct>& all, const std::vector<GemmProduct>& more) {
  for (const GemmProduct& product : more) {
    const auto same = std::ranges::find_if(
        all, [&](const GemmProduct& other) { return other.convolution && other.convolution == product.convolution; });
    if (same == all.end()) {
      all.push_back(product);
    } else {
      ++same->count;
    }
  }
}

template <class T>
std::vector<GemmProduct> Resnet<T>::products(const BatchShape& shape, Purpose purpose) const {
  std::vector<GemmProduct> all;
  const auto add = [&](const ConvolutionNorm& layer, const std::string& name) {
    const bool is_first = layer.convolution.weight == stem_.convolution.weight;
    const nn::ConvolutionProducts products{
        .name = name, .shape = layer.shape(), .precision = precision_of<T>, .needs_input_gradient = !is_first};
    add_products(all, nn::convolution_products(products, shape.rows, purpose));
  };
  add(stem_, "stem");
  for (const ResnetBlock<T>& block : blocks_) {
    const std::string& name = table_.units()[block.unit()].name;
    for (std::size_t i = 0; i < block.layers().size(); ++i) add(block.layers()[i], fmt::format("{}.layer.{}", name, i));
    if (block.shortcut()) add(*block.shortcut(), name + ".shortcut");
  }
  const nn::LinearProducts head{.name = "head",
                                .in = shape_.hidden.back(),
                                .out = shape_.labels,
                                .precision = precision_of<T>,
                                .forward = EpilogueKind::bias,
                                .has_float_result = true};
  add_products(all, nn::linear_products(head, shape.rows, purpose));
  return all;
}

template <class T>
std::vector<double> Resnet<T>::unit_flops(const BatchShape& shape, nn::Recompute recompute) const {
  const auto images = static_cast<double>(shape.rows);
  const double again = recompute == nn::Recompute::layer ? 1.0 : 0.0;
  std::vector<double> flops(table_.units().size());
  flops[stem_unit()] = images * (2.0 + again) * convolution_flops(stem_.shape());
  for (const ResnetBlock<T>& block : blocks_) {
    double forward = block.shortcut() ? convolution_flops(block.shortcut()->shape()) : 0.0;
    for (const ConvolutionNorm& layer : block.layers()) forward += convolution_flops(layer.shape());
    // The last block is not recomputed: its results are still in memory when its backward pass begins.
    flops[block.unit()] = images * (3.0 + (&block == &blocks_.back() ? 0.0 : again)) * forward;
  }
  flops[head_unit()] = 6.0 * images * static_cast<double>(shape_.hidden.back() * shape_.labels);
  return flops;
}

}  // namespace

std::unique_ptr<nn::Model> make_resnet(const ResnetShape& shape, Precision precision) {
  return with_type(precision,
                   [&]<class T>(T) -> std::unique_ptr<nn::Model> { return std::make_unique<Resnet<T>>(shape); });
}

}  // namespace mylos::families
