#include "core/kernels/products/convolution_onednn.hpp"

#include <algorithm>
#include <string_view>
#include <unordered_map>

namespace mylos {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;

memory::dim dim(std::size_t size) { return static_cast<memory::dim>(size); }

memory::dims weight_dims(const ConvolutionShape& shape) {
  return {dim(shape.out), dim(shape.in), dim(shape.kernel_height), dim(shape.kernel_width)};
}

/// The arguments of any of the three passes. oneDNN chooses the layout of `weight`.
struct Arguments {
  memory::desc x, weight, y;
  memory::dims strides, padding;
};

using ForwardDescription = dnnl::convolution_forward::primitive_desc;

#if DNNL_VERSION_MAJOR >= 3
ForwardDescription describe_forward(const Arguments& of, const dnnl::primitive_attr& attributes,
                                    const dnnl::engine& engine) {
  return {engine,
          dnnl::prop_kind::forward_training,
          dnnl::algorithm::convolution_direct,
          of.x,
          of.weight,
          of.y,
          of.strides,
          of.padding,
          of.padding,
          attributes,
          true};
}
dnnl::convolution_backward_data::primitive_desc describe_input_gradient(const Arguments& of,
                                                                        const ForwardDescription& forward,
                                                                        const dnnl::primitive_attr& attributes,
                                                                        const dnnl::engine& engine) {
  return {engine,     dnnl::algorithm::convolution_direct,
          of.x,       of.weight,
          of.y,       of.strides,
          of.padding, of.padding,
          forward,    attributes,
          true};
}
dnnl::convolution_backward_weights::primitive_desc describe_weight_gradient(const Arguments& of,
                                                                            const ForwardDescription& forward,
                                                                            const dnnl::primitive_attr& attributes,
                                                                            const dnnl::engine& engine) {
  return {engine,     dnnl::algorithm::convolution_direct,
          of.x,       of.weight,
          of.y,       of.strides,
          of.padding, of.padding,
          forward,    attributes,
          true};
}
#else
ForwardDescription describe_forward(const Arguments& of, const dnnl::primitive_attr& attributes,
                                    const dnnl::engine& engine) {
  return {dnnl::convolution_forward::desc(dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct, of.x,
                                          of.weight, of.y, of.strides, of.padding, of.padding),
          attributes, engine, true};
}
dnnl::convolution_backward_data::primitive_desc describe_input_gradient(const Arguments& of,
                                                                        const ForwardDescription& forward,
                                                                        const dnnl::primitive_attr& attributes,
                                                                        const dnnl::engine& engine) {
  return {dnnl::convolution_backward_data::desc(dnnl::algorithm::convolution_direct, of.x, of.weight, of.y, of.strides,
                                                of.padding, of.padding),
          attributes, engine, forward, true};
}
dnnl::convolution_backward_weights::primitive_desc describe_weight_gradient(const Arguments& of,
                                                                            const ForwardDescription& forward,
                                                                            const dnnl::primitive_attr& attributes,
                                                                            const dnnl::engine& engine) {
  return {dnnl::convolution_backward_weights::desc(dnnl::algorithm::convolution_direct, of.x, of.weight, of.y,
                                                   of.strides, of.padding, of.padding),
          attributes, engine, forward, true};
}
#endif

/// Returns whether an implementation is fast enough: reference implementations are slow, and those by matrix products
/// copy the patches of whole images.
bool is_worth_it(std::string_view implementation) {
  return implementation.find("ref") == std::string_view::npos && implementation.find("gemm") == std::string_view::npos;
}

/// Minimum scratch memory held for all primitives, whose needs do not grow with the images.
constexpr std::size_t least_scratch = std::size_t{8} << 20;

}  // namespace

memory::data_type onednn_type(Precision precision) {
  switch (precision) {
    case Precision::bfloat16:
      return memory::data_type::bf16;
    case Precision::float16:
      return memory::data_type::f16;
    case Precision::float32:
      break;
  }
  return memory::data_type::f32;
}

bool OneDnnConvolution::has(const GemmProduct& product) { return find(product).primitive.get(true) != nullptr; }

const OneDnnConvolution::Primitive& OneDnnConvolution::find(const GemmProduct& product) {
  const Key key{*product.convolution, batch_extent(product), product.input, product.accumulate};
  return primitives_.get(key, [&] { return make(key); });
}

template <class Description>
void OneDnnConvolution::take(Primitive& primitive, const Description& description, const memory::desc& packed) const {
  if (!is_worth_it(description.impl_info_str())) return;
  primitive.scratch = description.scratchpad_desc();
  primitive.packed = packed;
  primitive.primitive = dnnl::primitive(description.get());
}

OneDnnConvolution::Primitive OneDnnConvolution::make(const Key& key) const {
  const auto& [shape, pass] = key.convolution;
  const memory::data_type type = onednn_type(key.precision);
  const bool is_gradient = pass == ConvolutionPass::weight_gradient;
  const memory::data_type weight_type = is_gradient ? memory::data_type::f32 : type;
  Primitive made;
  made.x = {{dim(key.images), dim(shape.in), dim(shape.height), dim(shape.width)}, type, Tag::nhwc};
  made.y = {{dim(key.images), dim(shape.out), dim(shape.out_height()), dim(shape.out_width())}, type, Tag::nhwc};
  made.weight = {weight_dims(shape), weight_type, Tag::ohwi};
  Arguments arguments{made.x,
                      {weight_dims(shape), type, Tag::any},
                      made.y,
                      {dim(shape.stride), dim(shape.stride)},
                      {dim(shape.padding), dim(shape.padding)}};
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const ForwardDescription forward = describe_forward(arguments, attributes, engine_);
  if (!forward) return made;
  if (pass == ConvolutionPass::forward) {
    take(made, forward, forward.weights_desc());
  } else if (pass == ConvolutionPass::input_gradient) {
    const auto gradient = describe_input_gradient(arguments, forward, attributes, engine_);
    if (gradient) take(made, gradient, gradient.weights_desc());
  } else {
    arguments.weight = {weight_dims(shape), weight_type, Tag::any};
    const auto gradient = describe_weight_gradient(arguments, forward, attributes, engine_);
    if (gradient) take(made, gradient, gradient.diff_weights_desc());
  }
  if (!made.primitive.get(true) || (made.packed == made.weight && !key.accumulate)) return made;
  dnnl::primitive_attr adds;
  if (key.accumulate) {
    dnnl::post_ops sum;
    sum.append_sum(1.0f);
    adds.set_post_ops(sum);
  }
  made.reorder = is_gradient ? dnnl::reorder({engine_, made.packed, engine_, made.weight, adds})
                             : dnnl::reorder({engine_, made.weight, engine_, made.packed});
  return made;
}

std::size_t OneDnnConvolution::bytes(const GemmProduct& product) {
  const Primitive& found = find(product);
  const std::size_t packed = found.reorder.get(true) != nullptr ? found.packed.get_size() : 0;
  return packed + std::max<std::size_t>(found.scratch.get_size(), least_scratch);
}

void OneDnnConvolution::compute(const GemmCall& call) {
  const Primitive& primitive = find(product_of(call));
  const auto wrap = [this](const memory::desc& description, const void* data) {
    return memory(description, engine_, const_cast<void*>(data));
  };
  const ConvolutionPass pass = call.convolution->pass;
  const bool is_gradient = pass == ConvolutionPass::weight_gradient;
  const memory weight = wrap(primitive.weight, is_gradient ? call.c : call.b);
  memory packed = weight;
  if (primitive.reorder.get(true) != nullptr) {
    packed = wrap(primitive.packed, packed_.get(primitive.packed.get_size()));
    if (!is_gradient) primitive.reorder.execute(stream_, {{DNNL_ARG_FROM, weight}, {DNNL_ARG_TO, packed}});
  }
  std::unordered_map<int, memory> arguments;
  if (primitive.scratch.get_size() > 0) {
    void* const scratch = scratch_.get(std::max<std::size_t>(primitive.scratch.get_size(), least_scratch));
    arguments.emplace(DNNL_ARG_SCRATCHPAD, wrap(primitive.scratch, scratch));
  }
  switch (pass) {
    case ConvolutionPass::forward:
      arguments.emplace(DNNL_ARG_SRC, wrap(primitive.x, call.a));
      arguments.emplace(DNNL_ARG_WEIGHTS, packed);
      arguments.emplace(DNNL_ARG_DST, wrap(primitive.y, call.c));
      break;
    case ConvolutionPass::input_gradient:
      arguments.emplace(DNNL_ARG_DIFF_DST, wrap(primitive.y, call.a));
      arguments.emplace(DNNL_ARG_WEIGHTS, packed);
      arguments.emplace(DNNL_ARG_DIFF_SRC, wrap(primitive.x, call.c));
      break;
    case ConvolutionPass::weight_gradient:
      arguments.emplace(DNNL_ARG_DIFF_DST, wrap(primitive.y, call.a));
      arguments.emplace(DNNL_ARG_SRC, wrap(primitive.x, call.b));
      arguments.emplace(DNNL_ARG_DIFF_WEIGHTS, packed);
      break;
  }
  primitive.primitive.execute(stream_, arguments);
  if (is_gradient && primitive.reorder.get(true) != nullptr) {
    primitive.reorder.execute(stream_, {{DNNL_ARG_FROM, packed}, {DNNL_ARG_TO, weight}});
  }
  stream_.wait();
}

}  // namespace mylos
