#include "families/resnet/resnet_body.hpp"

#include "core/base/error.hpp"
#include "core/element_type.hpp"
#include "core/kernels/activation.hpp"
#include "core/kernels/pixels.hpp"
#include "core/kernels/pooling.hpp"
#include "families/resnet/resnet_block.hpp"
#include "families/resnet/resnet_memory.hpp"
#include "nn/heads/linear_heads.hpp"
#include "nn/network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace mylos::families {
namespace {

using Purpose = ParameterStore::Purpose;

constexpr const char* stem_name = "resnet.embedder.embedder";

/// Unit 0 is the stem, and unit i + 1 block i.
template <class T>
struct ResnetUnits {
  /// A block's place: "stages.0.layers.1", of stage 0.
  struct Place {
    std::string unit;
    std::size_t stage;
    ResnetBlockShape shape;
    std::string tensors() const { return "resnet.encoder." + unit; }
  };

  explicit ResnetUnits(const ResnetShape& of) : shape(of) {
    check_shape(shape);
    const auto stages = resnet_stages(shape);
    for (std::size_t stage = 0; stage < stages.size(); ++stage) {
      for (std::size_t block = 0; block < stages[stage].size(); ++block) {
        places.push_back({fmt::format("stages.{}.layers.{}", stage, block), stage, stages[stage][block]});
      }
    }
  }
  void find_tensors(const ParameterTable& table) {
    stem = find_convolution_norm(table, stem_name, stem_convolution(shape));
    for (const Place& place : places) blocks.emplace_back(table, place.tensors(), place.shape);
  }

  bool pools() const { return shape.stem == ImageStem::imagenet; }
  PoolingShape pooling() const { return {stem.shape().out_height(), stem.shape().out_width()}; }
  /// Calls f(layer, name) for each convolution.
  template <class F>
  void for_each_convolution(const F& f) const {
    f(stem, "stem");
    for (std::size_t block = 0; block < blocks.size(); ++block) {
      const std::vector<ConvolutionNorm>& layers = blocks[block].layers();
      const std::string& name = places[block].unit;
      for (std::size_t i = 0; i < layers.size(); ++i) f(layers[i], fmt::format("{}.layer.{}", name, i));
      if (blocks[block].shortcut()) f(*blocks[block].shortcut(), name + ".shortcut");
    }
  }

  ResnetShape shape;
  std::vector<Place> places;
  ConvolutionNorm stem;
  std::vector<ResnetBlock<T>> blocks;
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
class ResnetPass final : public nn::BodyPass<T> {
 public:
  ResnetPass(const ResnetUnits<T>& units, Arena& arena, const BatchShape& batch, Purpose purpose,
             nn::Recompute recompute, std::size_t first_trained);

  void forward(const nn::Pass& pass, const Batch& batch, std::size_t unit) override;
  void finish(const nn::Pass& pass, const Batch& batch) override;
  void finish_backward(const nn::Pass& pass, const Batch& batch) override;
  void restore(const nn::Pass& pass, const Batch& batch, std::size_t unit) override;
  void backward(const nn::Pass& pass, const Batch& batch, std::size_t unit) override;

 private:
  /// Memory for the two parts of the gradients of a stage.
  struct GradientMemory {
    T *first, *second;
  };

  std::size_t norm_workspace(const BatchShape& batch) const;
  ImagesPass images_of(const nn::Pass& pass, const Batch& batch) const {
    return {pass, batch.sample_starts(), batch.samples_of_rows(), purpose_, norm_workspace_};
  }
  void load_pixels(const nn::Pass& pass, const Batch& batch) const;
  void stem_forward(const ImagesPass& images) const;
  void stem_backward(const ImagesPass& images) const;
  GradientTargets<T> targets(std::size_t block) const;
  const Matrix<T>& result(std::size_t unit) const { return unit == 0 ? stem_y_ : blocks_[unit - 1].y; }

  const ResnetUnits<T>& units_;
  Purpose purpose_;
  Matrix<T> pixels_;  ///< (T H W, C)
  ConvolutionNormSaved<T> stem_;
  Matrix<T> stem_inner_, stem_y_;
  Matrix<std::uint8_t> taken_;  ///< position of the maximum in each pooling window
  std::vector<ResnetBlockMemory<T>> blocks_;
  std::vector<GradientMemory> stages_;
  GradientSum<T> gradient_;  ///< of the result of the unit whose backward pass is next
  Vector<float> norm_workspace_;
};

template <class T>
ResnetPass<T>::ResnetPass(const ResnetUnits<T>& units, Arena& arena, const BatchShape& batch, Purpose purpose,
                          nn::Recompute recompute, std::size_t first_trained)
    : units_(units), purpose_(purpose) {
  const ResnetShape& shape = units.shape;
  const bool trains = purpose == Purpose::training, has_backward = trains && first_trained <= units.blocks.size();
  const ResnetSlots slots = trains ? training_slots(shape, recompute, first_trained) : prediction_slots(shape);
  const std::size_t images = batch.rows, stem_rows = images * stem_pixels(shape);
  const SlotArrays<T> arrays{arena, arena.vector<T>(slots.size * images), images, trains ? batch.samples : 1};
  pixels_ = Matrix<T>(arrays.at(slots.pixels), images * shape.pixels(), shape.channels);
  stem_ = arrays.saved(units.stem, slots.stem);
  stem_inner_ = units.pools() ? arrays.result(units.stem.shape(), slots.stem_inner) : stem_.result;
  stem_y_ = Matrix<T>(arrays.at(slots.stem_y), stem_rows, shape.embedding);
  if (units.pools() && has_backward && first_trained == 0)
    taken_ = arena.matrix<std::uint8_t>(stem_rows, shape.embedding);
  for (std::size_t block = 0; block < units.blocks.size(); ++block) {
    blocks_.push_back(arrays.block(units.blocks[block], slots.blocks[block]));
  }
  for (const GradientSlots& stage : slots.stages) stages_.push_back({arrays.at(stage.first), arrays.at(stage.second)});
  this->output_.x = arena.matrix<T>(images, shape.hidden.back());
  if (trains) norm_workspace_ = arena.vector<float>(norm_workspace(batch));
  if (has_backward) this->output_.dx = arena.matrix<T>(images, shape.hidden.back());
}

template <class T>
std::size_t ResnetPass<T>::norm_workspace(const BatchShape& batch) const {
  std::size_t largest = 0;
  units_.for_each_convolution([&](const ConvolutionNorm& layer, const std::string&) {
    const ConvolutionShape& shape = layer.shape();
    largest = std::max(largest, batch_norm_workspace(batch.samples, batch.rows, shape.out_pixels(), shape.out));
  });
  return largest;
}

template <class T>
void ResnetPass<T>::load_pixels(const nn::Pass& pass, const Batch& batch) const {
  const ResnetShape& shape = units_.shape;
  const auto check = [&](const char* name, std::size_t size) {
    require(size == pixels_.size(), fmt::format("ResNet: {} has {} values for {} images of {} x {} x {}", name, size,
                                                batch.shape().rows, shape.height, shape.width, shape.channels));
  };
  if (batch.has(nn::names::pixel_values)) {
    const ConstVector<float> values = batch.floats(nn::names::pixel_values);
    check(nn::names::pixel_values, values.size());
    return convert<float, T>(pass.space, values, Vector<T>(pixels_.data(), pixels_.size()));
  }
  const ConstVector<std::uint8_t> bytes = batch.bytes(nn::names::pixels);
  check(nn::names::pixels, bytes.size());
  normalize_pixels<T>(pass.space, pixel_normalization(shape), bytes, pixels_);
}

template <class T>
void ResnetPass<T>::stem_forward(const ImagesPass& images) const {
  const ExecutionSpace& space = images.pass.space;
  convolution_norm_forward<T>(images, units_.stem, pixels_, stem_);
  const Matrix<T>& normal = units_.pools() ? stem_inner_ : stem_y_;
  batch_norm_relu<T>(space, images.groups(units_.stem), normalization_of(images, units_.stem, stem_), normal);
  if (units_.pools()) max_pool<T>(space, units_.pooling(), normal, stem_y_, taken_);
}

template <class T>
void ResnetPass<T>::stem_backward(const ImagesPass& images) const {
  const ExecutionSpace& space = images.pass.space;
  GradientSum<T> of_stem = gradient_;
  if (units_.pools()) {
    max_pool_backward<T>(space, units_.pooling(), taken_, gradient_.dy, gradient_.also, stem_inner_);
    of_stem = {stem_inner_, {}};
  }
  batch_norm_relu_backward<T>(space, images.groups(units_.stem), normalization_of(images, units_.stem, stem_),
                              of_stem.dy, of_stem.also, stem_.result, norm_gradients(images, units_.stem),
                              norm_workspace_);
  nn::convolution_weight_gradient<T>(images.pass, units_.stem.convolution, pixels_, stem_.result);
}

template <class T>
void ResnetPass<T>::forward(const nn::Pass& pass, const Batch& batch, std::size_t unit) {
  const ImagesPass images = images_of(pass, batch);
  if (unit > 0) return units_.blocks[unit - 1].forward(images, result(unit - 1), blocks_[unit - 1]);
  load_pixels(pass, batch);
  stem_forward(images);
}

template <class T>
void ResnetPass<T>::finish(const nn::Pass& pass, const Batch&) {
  average_pool<T>(pass.space, result(blocks_.size()), this->output_.x);
}

template <class T>
void ResnetPass<T>::finish_backward(const nn::Pass& pass, const Batch&) {
  const Matrix<T>& y = result(blocks_.size());
  gradient_ = {Matrix<T>(stages_.back().first, y.extent(0), y.extent(1)), {}};
  average_pool_backward<T>(pass.space, this->output_.dx, gradient_.dy);
}

template <class T>
void ResnetPass<T>::restore(const nn::Pass& pass, const Batch& batch, std::size_t unit) {
  if (unit == 0) return nn::convolution_forward<T>(pass, units_.stem.convolution, pixels_, stem_.result);
  units_.blocks[unit - 1].restore(images_of(pass, batch), result(unit - 1), blocks_[unit - 1]);
}

/// Within a stage the two parts swap slots: the second slot is free first.
template <class T>
GradientTargets<T> ResnetPass<T>::targets(std::size_t block) const {
  const GradientMemory& own = stages_[units_.places[block].stage];
  const GradientMemory& before = stages_[block == 0 ? 0 : units_.places[block - 1].stage];
  T* const free = gradient_.dy.data() == own.second ? own.first : own.second;
  if (before.first != own.first) return {free, before.first, before.second};
  return {free, free, gradient_.dy.data()};
}

template <class T>
void ResnetPass<T>::backward(const nn::Pass& pass, const Batch& batch, std::size_t unit) {
  const ImagesPass images = images_of(pass, batch);
  if (unit == 0) return stem_backward(images);
  const std::size_t block = unit - 1;
  gradient_ = units_.blocks[block].backward(images, result(block), blocks_[block], gradient_, targets(block));
}

/// Appends products to `all`; for a convolution that is already there, the count is increased.
void add_products(std::vector<GemmProduct>& all, const std::vector<GemmProduct>& more) {
  for (const GemmProduct& product : more) {
    const auto same = std::ranges::find(all, product.convolution, &GemmProduct::convolution);
    if (same == all.end()) {
      all.push_back(product);
    } else {
      ++same->count;
    }
  }
}

template <class T>
class ResnetBody final : public nn::Body<T> {
 public:
  explicit ResnetBody(const ResnetShape& shape) : units_(shape) {}

  std::size_t width() const override { return units_.shape.hidden.back(); }
  void add_units(ParameterTable::Builder& builder) const override {
    builder.unit("stem");
    add_convolution_norm_rows(builder, stem_name, stem_convolution(units_.shape));
    for (const auto& place : units_.places) {
      builder.unit(place.unit);
      ResnetBlock<T>::add_rows(builder, place.tensors(), place.shape);
    }
  }
  void find_tensors(const ParameterTable& table) override { units_.find_tensors(table); }

  bool can_recompute(nn::Recompute recompute) const override { return recompute != nn::Recompute::attention; }
  std::unique_ptr<nn::BodyPass<T>> begin(Arena& arena, const BatchShape& batch, Purpose purpose,
                                         nn::Recompute recompute, std::size_t first_trained) const override {
    return std::make_unique<ResnetPass<T>>(units_, arena, batch, purpose, recompute, first_trained);
  }
  std::vector<GemmProduct> products(const BatchShape& batch, Purpose purpose) const override;
  nn::UnitFlops training_flops(std::size_t unit, const BatchShape& batch, nn::Recompute recompute) const override;

 private:
  ResnetUnits<T> units_;
};

template <class T>
std::vector<GemmProduct> ResnetBody<T>::products(const BatchShape& batch, Purpose purpose) const {
  std::vector<GemmProduct> all;
  units_.for_each_convolution([&](const ConvolutionNorm& layer, const std::string& name) {
    const nn::ConvolutionProducts products{.name = name,
                                           .shape = layer.shape(),
                                           .precision = precision_of<T>,
                                           .needs_input_gradient = &layer != &units_.stem};
    add_products(all, nn::convolution_products(products, batch.rows, purpose));
  });
  return all;
}

/// The stem has no input gradient.
template <class T>
nn::UnitFlops ResnetBody<T>::training_flops(std::size_t unit, const BatchShape& batch, nn::Recompute recompute) const {
  const double again = recompute == nn::Recompute::layer ? 1.0 : 0.0, images = static_cast<double>(batch.rows);
  const auto of = [&](double forward, bool has_input_gradient) -> nn::UnitFlops {
    const double all = images * forward;
    return {all, has_input_gradient ? all : 0.0, all, again * all};
  };
  if (unit == 0) return of(convolution_flops(units_.stem.shape()), false);
  const ResnetBlock<T>& block = units_.blocks[unit - 1];
  double forward = block.shortcut() ? convolution_flops(block.shortcut()->shape()) : 0.0;
  for (const ConvolutionNorm& layer : block.layers()) forward += convolution_flops(layer.shape());
  return of(forward, true);
}

}  // namespace

template <class T>
std::unique_ptr<nn::Body<T>> make_resnet_body(const ResnetShape& shape) {
  return std::make_unique<ResnetBody<T>>(shape);
}

template std::unique_ptr<nn::Body<float>> make_resnet_body<float>(const ResnetShape&);
template std::unique_ptr<nn::Body<bfloat16>> make_resnet_body<bfloat16>(const ResnetShape&);
template std::unique_ptr<nn::Body<half>> make_resnet_body<half>(const ResnetShape&);

}  // namespace mylos::families
