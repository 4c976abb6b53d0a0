#include "core/kernels/activation.hpp"
#include "core/kernels/gemm_provider.hpp"

#include <oneapi/dnnl/dnnl.hpp>

#include <algorithm>
#include <map>
#include <tuple>

/// Products by oneDNN on the host: float everywhere, 16 bits where the CPU has instructions for them (AVX512-BF16,
/// AMX); elsewhere 16-bit operands are converted. The bias is fused, and beta = 1 is a sum.
namespace mylos {
namespace {

using dnnl::memory;

/// All that a primitive is made for.
struct Shape {
  std::size_t m, n, k;
  Transpose transpose_a, transpose_b;
  Precision input, output;
  bool accumulate, has_bias;

  auto operator<=>(const Shape&) const = default;
};

struct Product {
  dnnl::matmul primitive;
  memory::desc a, b, bias, c, scratch;
};

memory::data_type type_of(Precision precision) {
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

/// Row-major rows x columns after the transposition.
memory::desc describe(Precision precision, Transpose transpose, std::size_t rows, std::size_t columns) {
  const auto r = static_cast<memory::dim>(rows), c = static_cast<memory::dim>(columns);
  const memory::dims strides = transpose == Transpose::no ? memory::dims{c, 1} : memory::dims{1, r};
  return {{r, c}, type_of(precision), strides};
}

bool fuses_bias(EpilogueKind kind) { return kind == EpilogueKind::bias || kind == EpilogueKind::bias_gelu; }

/// What is left of the epilogue after a product with its bias.
template <class T>
void apply_rest(const ExecutionSpace& space, const GemmCall& call) {
  const Matrix<T> pre(static_cast<T*>(call.pre), call.m, call.n), c(static_cast<T*>(call.c), call.m, call.n);
  if (call.epilogue == EpilogueKind::bias_gelu) gelu<T>(space, ConstMatrix<T>(pre), c);
  if (call.epilogue == EpilogueKind::gelu_gradient) gelu_gradient<T>(space, ConstMatrix<T>(pre), c);
}

/// Primitives kept: some twenty lengths of a packed batch. One holds about 100 KB of code.
constexpr std::size_t most_products = 256;

Shape shape_of(const GemmCall& call) {
  return {call.m,
          call.n,
          call.k,
          call.transpose_a,
          call.transpose_b,
          call.input,
          call.output,
          call.beta != 0.0f,
          fuses_bias(call.epilogue)};
}

class OneDnnGemm : public GemmProvider {
 public:
  OneDnnGemm() { dnnl::set_primitive_cache_capacity(0); }  // a second copy of what products_ keeps
  std::string_view name() const override;

  void multiply(const ExecutionSpace& space, const GemmCall& call) override {
    GemmCall product = call;
    product.c = product_target(call);
    if (const Product* native = find(product)) {
      execute(*native, product);
      return with_type(call.output, [&]<class T>(T) { apply_rest<T>(space, call); });
    }
    product = operands_.widen(space, call);
    execute(*find(product), product);
    operands_.narrow(space, call, product);
  }

 private:
  /// The primitive for this product, made at the first call of its shape; null where oneDNN has none but its reference.
  const Product* find(const GemmCall& call);
  Product make(const Shape& shape);
  void execute(const Product& product, const GemmCall& call);

  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  std::map<Shape, Product> products_;
  GemmWorkspace scratch_;
  FloatOperands operands_;
};

const Product* OneDnnGemm::find(const GemmCall& call) {
  const Shape shape = shape_of(call);
  auto found = products_.find(shape);
  if (found == products_.end()) {
    if (products_.size() == most_products) products_.clear();
    found = products_.emplace(shape, make(shape)).first;
  }
  return found->second.primitive.get(true) != nullptr ? &found->second : nullptr;
}

Product OneDnnGemm::make(const Shape& shape) {
  Product product;
  product.a = describe(shape.input, shape.transpose_a, shape.m, shape.k);
  product.b = describe(shape.input, shape.transpose_b, shape.k, shape.n);
  product.c = describe(shape.output, Transpose::no, shape.m, shape.n);
  if (shape.has_bias) product.bias = describe(shape.output, Transpose::no, 1, shape.n);
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (shape.accumulate) {
    dnnl::post_ops sum;
    sum.append_sum(1.0f);
    attributes.set_post_ops(sum);
  }
  const auto description = shape.has_bias ? dnnl::matmul::desc(product.a, product.b, product.bias, product.c)
                                          : dnnl::matmul::desc(product.a, product.b, product.c);
  const dnnl::matmul::primitive_desc primitive(description, attributes, engine_, true);
  const bool is_float = shape.input == Precision::float32;
  if (!primitive || (!is_float && std::string_view(primitive.impl_info_str()).find("ref") != std::string_view::npos)) {
    return product;
  }
  product.scratch = primitive.scratchpad_desc();
  product.primitive = dnnl::matmul(primitive);
  return product;
}

/// oneDNN's blocks of a small product take up to a few MiB a thread whatever the operands.
constexpr std::size_t least_workspace = std::size_t{8} << 20;

/// Workspace to hold for a product that wants `scratch` bytes. oneDNN's wish does not grow with the shape: a smaller
/// product may want more than a larger one. This bound does, so that what the largest product took is enough for all.
std::size_t workspace_bytes(std::size_t scratch, const GemmCall& call) {
  const std::size_t operands = (call.m * call.k + call.k * call.n + call.m * call.n) * sizeof(float);
  return std::max({scratch, operands, least_workspace});
}

void OneDnnGemm::execute(const Product& product, const GemmCall& call) {
  const auto wrap = [this](const memory::desc& description, const void* data) {
    return memory(description, engine_, const_cast<void*>(data));
  };
  std::unordered_map<int, memory> arguments{{DNNL_ARG_SRC, wrap(product.a, call.a)},
                                            {DNNL_ARG_WEIGHTS, wrap(product.b, call.b)},
                                            {DNNL_ARG_DST, wrap(product.c, call.c)}};
  if (fuses_bias(call.epilogue)) arguments.emplace(DNNL_ARG_BIAS, wrap(product.bias, call.bias));
  const std::size_t scratch = product.scratch.get_size();
  if (scratch > 0) {
    void* const workspace = scratch_.get(workspace_bytes(scratch, call));
    arguments.emplace(DNNL_ARG_SCRATCHPAD, wrap(product.scratch, workspace));
  }
  product.primitive.execute(stream_, arguments);
  stream_.wait();
}

}  // namespace

extern const GemmProviderEntry onednn_gemm;
const GemmProviderEntry onednn_gemm{"onednn",
                                    []() -> std::unique_ptr<GemmProvider> { return std::make_unique<OneDnnGemm>(); }};

std::string_view OneDnnGemm::name() const { return onednn_gemm.name; }

}  // namespace mylos
