#include "core/kernels/activation.hpp"
#include "core/kernels/products/convolution_onednn.hpp"
#include "core/kernels/products/float_convolution.hpp"
#include "core/kernels/products/gathered_convolution.hpp"
#include "core/kernels/products/gemm_provider.hpp"
#include "core/kernels/products/recently_used.hpp"
#include "core/kernels/products/winograd_convolution.hpp"
#include "core/kernels/products/winograd_sizes.hpp"

#include <fmt/format.h>
#include <oneapi/dnnl/dnnl.hpp>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <tuple>
#include <unordered_map>
#include <vector>

/// Products by oneDNN on the host: float on all CPUs, 16 bits if the CPU has instructions for them (AVX512-BF16, AMX);
/// otherwise 16-bit operands are converted. The bias is fused, and beta = 1 is a sum post-op. There are two providers.
/// One reads operands as they are. The other first copies a weight (B, if A is not transposed) to the layout that
/// oneDNN prefers, which pays off if many rows read it. Convolutions of the first use Winograd's transforms if
/// possible, else products of gathered rows; the second uses oneDNN's own convolutions, which need weights in their own
/// layouts.
namespace mylos {
namespace {

using dnnl::memory;

/// The parameters of a primitive.
struct Shape {
  std::size_t m, n, k;
  Transpose transpose_a, transpose_b;
  Precision input, output;
  bool accumulate, has_bias;
  std::size_t count = 1;  ///< number of products in one call

  auto operator<=>(const Shape&) const = default;
};

struct Product {
  dnnl::matmul primitive;
  memory::desc a, b, bias, c, scratch;
  dnnl::reorder pack;  ///< from B to `packed`; null if B is read as it is
  memory::desc packed;
};

enum class Weights { as_they_are, packed };

/// Returns the same matrix in any layout that the primitive prefers.
memory::desc any_layout(const memory::desc& description) {
#if DNNL_VERSION_MAJOR >= 3
  return {description.get_dims(), description.get_data_type(), memory::format_tag::any};
#else
  return {description.dims(), description.data_type(), memory::format_tag::any};
#endif
}

/// Describes `count` consecutive row-major matrices of rows x columns, after the transposition.
memory::desc describe(std::size_t count, Precision precision, Transpose transpose, std::size_t rows,
                      std::size_t columns) {
  const auto n = static_cast<memory::dim>(count), r = static_cast<memory::dim>(rows),
             c = static_cast<memory::dim>(columns);
  const memory::dims strides = transpose == Transpose::no ? memory::dims{c, 1} : memory::dims{1, r};
  if (count == 1) return {{r, c}, onednn_type(precision), strides};
  return {{n, r, c}, onednn_type(precision), {r * c, strides[0], strides[1]}};
}

bool fuses_bias(EpilogueKind kind) { return kind == EpilogueKind::bias || kind == EpilogueKind::bias_gelu; }

/// Applies the rest of the epilogue after a product that has added the bias.
template <class T>
void apply_rest(const ExecutionSpace& space, const GemmCall& call) {
  const Matrix<T> pre(static_cast<T*>(call.pre), call.m, call.n), c(static_cast<T*>(call.c), call.m, call.n);
  if (call.epilogue == EpilogueKind::bias_gelu) gelu<T>(space, ConstMatrix<T>(pre), c);
}

/// Returns a primitive descriptor; empty if oneDNN has none. Version 3 has no separate operation descriptor.
dnnl::matmul::primitive_desc describe_matmul(const Product& product, const memory::desc& b, bool has_bias,
                                             const dnnl::primitive_attr& attributes, const dnnl::engine& engine) {
#if DNNL_VERSION_MAJOR >= 3
  if (!has_bias) return {engine, product.a, b, product.c, attributes, true};
  return {engine, product.a, b, product.bias, product.c, attributes, true};
#else
  if (!has_bias) return {dnnl::matmul::desc(product.a, b, product.c), attributes, engine, true};
  return {dnnl::matmul::desc(product.a, b, product.bias, product.c), attributes, engine, true};
#endif
}

/// Cached primitives: enough for two shapes of a transformer's micro-batch. Packed batches of equal length are rare, so
/// more would hardly be reused.
constexpr std::size_t most_products = 32;
/// Cached primitives for blocks of convolutions: two dozen convolutions in a residual network, each with three passes
/// of up to four block shapes, which two or three batch sizes partly have in common.
constexpr std::size_t most_blocks = 288;

/// Returns the maximum bytes held by a primitive, mostly code generated for its shape. On CPUs without AVX-512, oneDNN
/// uses its own sgemm, whose code is common to all primitives. Measured.
std::size_t bytes_of_primitive() {
  constexpr std::size_t generated = std::size_t{128} << 10, shared = std::size_t{16} << 10;
  constexpr auto avx512 = static_cast<unsigned>(dnnl::cpu_isa::avx512_core);
  return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & avx512) == avx512 ? generated : shared;
}

Shape shape_of(const GemmProduct& product) {
  return {product.m,     product.n,      product.k,          product.transpose_a,         product.transpose_b,
          product.input, product.output, product.accumulate, fuses_bias(product.epilogue)};
}

class OneDnnGemm : public GemmProvider {
 public:
  explicit OneDnnGemm(Weights weights) : weights_(weights) {
    // oneDNN's own cache would duplicate products_. Tests keep it with this variable of oneDNN, to share generated code
    // between the providers that they make.
    if (std::getenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY") == nullptr) dnnl::set_primitive_cache_capacity(0);
  }
  std::string_view name() const override;
  std::string version() const override;
  std::size_t workspace_bytes(std::span<const GemmProduct> products) override;
  std::size_t growth_bytes() const override {
    const std::size_t blocks = blocks_.size() == 0 ? 0 : blocks_.most() - blocks_.size();
    return (products_.most() - products_.size() + blocks + convolutions_.growth()) * bytes_of_primitive();
  }

  void multiply(const ExecutionSpace& space, const GemmCall& call) override {
    if (call.convolution) return convolve(space, call);
    multiply(space, call, products_);
  }

 private:
  using Products = RecentlyUsed<Shape, Product>;

  void multiply(const ExecutionSpace& space, const GemmCall& call, Products& products) {
    GemmCall product = call;
    product.c = product_target(call);
    if (const Product* native = find(product_of(product), products)) {
      execute(*native, product);
      return with_type(call.output, [&]<class T>(T) { apply_rest<T>(space, call); });
    }
    product = operands_.widen(space, call);
    execute(*find(product_of(product), products), product);
    operands_.narrow(space, call, product);
  }
  /// Returns the primitive for this product, created at the first call with its shape; null if oneDNN only has its
  /// reference implementation.
  const Product* find(const GemmProduct& asked, Products& products);
  const Product* find(const Shape& shape, Products& products);
  Product make(const Shape& shape);
  /// Returns whether oneDNN has fast products of such elements.
  bool multiplies(Precision precision);
  /// Returns whether it is computed by a convolution of oneDNN.
  bool has_convolution(const GemmProduct& product);
  /// Returns whether it is computed by Winograd's transforms.
  bool transforms(const GemmProduct& product) const {
    return weights_ == Weights::as_they_are && has_winograd(product);
  }
  void convolve(const ExecutionSpace& space, const GemmCall& call);
  void multiply(const ProductBatch& batch);
  /// Returns B in the layout that the primitive reads.
  memory pack(const Product& product, const GemmCall& call);
  /// Runs a primitive; `count` is the number of products in the call.
  void execute(const Product& product, const GemmCall& call, std::size_t count = 1);

  Weights weights_;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  Products products_{most_products}, blocks_{most_blocks};
  GemmWorkspace scratch_, packed_;
  FloatOperands operands_;
  GatheredConvolution gathered_;
  FloatConvolution float_images_;
  WinogradConvolution winograd_;
  OneDnnConvolution convolutions_{engine_, stream_};
};

const Product* OneDnnGemm::find(const GemmProduct& asked, Products& products) {
  return find(shape_of(asked), products);
}

const Product* OneDnnGemm::find(const Shape& shape, Products& products) {
  const Product& found = products.get(shape, [&] { return make(shape); });
  return found.primitive.get(true) != nullptr ? &found : nullptr;
}

bool OneDnnGemm::multiplies(Precision precision) {
  constexpr std::size_t extent = 64;
  const GemmProduct product{.m = extent, .n = extent, .k = extent, .input = precision, .output = precision};
  return precision == Precision::float32 || find(product, blocks_) != nullptr;
}

bool OneDnnGemm::has_convolution(const GemmProduct& product) {
  return weights_ == Weights::packed && convolutions_.has(product);
}

void OneDnnGemm::multiply(const ProductBatch& batch) {
  Shape shape{batch.m,
              batch.n,
              batch.k,
              batch.transpose_a,
              batch.transpose_b,
              Precision::float32,
              Precision::float32,
              batch.beta != 0.0f,
              false};
  shape.count = batch.count;
  GemmCall call{.m = batch.m, .n = batch.n, .k = batch.k};
  call.a = batch.a;
  call.b = batch.b;
  call.c = batch.c;
  execute(*find(shape, blocks_), call, batch.count);
}

void OneDnnGemm::convolve(const ExecutionSpace& space, const GemmCall& call) {
  if (has_convolution(product_of(call))) return convolutions_.compute(call);
  if (transforms(product_of(call))) {
    return winograd_.compute(space, call, [&](const ProductBatch& batch) { multiply(batch); });
  }
  if (!multiplies(call.input)) {
    return float_images_.compute(space, call, [&](const GemmCall& product) { convolve(space, product); });
  }
  gathered_.compute(space, call, [&](const GemmCall& product) { multiply(space, product, blocks_); });
}

std::size_t OneDnnGemm::workspace_bytes(std::span<const GemmProduct> products) {
  std::vector<GemmProduct> converted, convolutions;
  std::size_t packed = 0, scratch = 0;
  for (const GemmProduct& product : products) {
    if (product.convolution) {
      const bool is_native = has_convolution(product) || multiplies(product.input);
      (is_native ? convolutions : converted).push_back(product);
      continue;
    }
    const Product* made = find(product, products_);
    if (made == nullptr) {
      converted.push_back(product);
      GemmProduct widened = product;
      widened.input = widened.output = Precision::float32;
      made = find(widened, products_);
    }
    if (made->pack.get(true) != nullptr) packed = std::max<std::size_t>(packed, made->packed.get_size());
    scratch = std::max<std::size_t>(scratch, made->scratch.get_size());
  }
  std::ranges::copy(FloatConvolution::widened(converted), std::back_inserter(convolutions));
  std::size_t own = 0;
  for (const GemmProduct& product : convolutions) {
    if (has_convolution(product)) own = std::max(own, convolutions_.bytes(product));
  }
  std::vector<GemmProduct> transformed, gathered;
  for (const GemmProduct& product : convolutions) {
    if (!has_convolution(product)) (transforms(product) ? transformed : gathered).push_back(product);
  }
  return packed + scratch + own + FloatOperands::bytes(converted) + FloatConvolution::bytes(converted) +
         GatheredConvolution::bytes(gathered) + winograd_bytes(transformed);
}

Product OneDnnGemm::make(const Shape& shape) {
  Product product;
  product.a = describe(shape.count, shape.input, shape.transpose_a, shape.m, shape.k);
  product.b = describe(shape.count, shape.input, shape.transpose_b, shape.k, shape.n);
  product.c = describe(shape.count, shape.output, Transpose::no, shape.m, shape.n);
  if (shape.has_bias) product.bias = describe(1, shape.output, Transpose::no, 1, shape.n);
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (shape.accumulate) {
    dnnl::post_ops sum;
    sum.append_sum(1.0f);
    attributes.set_post_ops(sum);
  }
  const bool packs = weights_ == Weights::packed && shape.transpose_a == Transpose::no;
  const memory::desc b = packs ? any_layout(product.b) : product.b;
  const dnnl::matmul::primitive_desc primitive = describe_matmul(product, b, shape.has_bias, attributes, engine_);
  const bool is_float = shape.input == Precision::float32;
  if (!primitive || (!is_float && std::string_view(primitive.impl_info_str()).find("ref") != std::string_view::npos)) {
    return product;
  }
  product.scratch = primitive.scratchpad_desc();
  product.primitive = dnnl::matmul(primitive);
  product.packed = primitive.weights_desc();
  if (product.packed != product.b) {
    product.pack = dnnl::reorder(dnnl::reorder::primitive_desc(engine_, product.b, engine_, product.packed));
  }
  return product;
}

/// Layouts pad each extent of B to blocks of at most this many elements.
constexpr std::size_t largest_block = 64;

/// Returns the memory to hold for a packed B of `bytes` bytes: like held_workspace, a bound that grows with the shape.
std::size_t packed_bytes(std::size_t bytes, const GemmCall& call) {
  return std::max(bytes, (call.k + largest_block) * (call.n + largest_block) * bytes_of(call.input));
}

/// For small products, oneDNN's blocks take up to a few MiB per thread whatever the operands.
constexpr std::size_t least_workspace = std::size_t{8} << 20;

/// Returns the workspace to hold for a product that needs `scratch` bytes. oneDNN's need does not grow with the shape:
/// a smaller product may need more than a larger one. This bound does grow, so that the workspace of the largest
/// product suffices for all.
std::size_t held_workspace(std::size_t scratch, const GemmCall& call, std::size_t count) {
  const std::size_t operands = count * (call.m * call.k + call.k * call.n + call.m * call.n) * sizeof(float);
  return std::max({scratch, operands, least_workspace});
}

memory OneDnnGemm::pack(const Product& product, const GemmCall& call) {
  memory b(product.b, engine_, const_cast<void*>(call.b));
  if (product.pack.get(true) == nullptr) return b;
  memory packed(product.packed, engine_, packed_.get(packed_bytes(product.packed.get_size(), call)));
  product.pack.execute(stream_, b, packed);
  return packed;
}

void OneDnnGemm::execute(const Product& product, const GemmCall& call, std::size_t count) {
  const auto wrap = [this](const memory::desc& description, const void* data) {
    return memory(description, engine_, const_cast<void*>(data));
  };
  std::unordered_map<int, memory> arguments{{DNNL_ARG_SRC, wrap(product.a, call.a)},
                                            {DNNL_ARG_WEIGHTS, pack(product, call)},
                                            {DNNL_ARG_DST, wrap(product.c, call.c)}};
  if (fuses_bias(call.epilogue)) arguments.emplace(DNNL_ARG_BIAS, wrap(product.bias, call.bias));
  const std::size_t scratch = product.scratch.get_size();
  if (scratch > 0) {
    void* const workspace = scratch_.get(held_workspace(scratch, call, count));
    arguments.emplace(DNNL_ARG_SCRATCHPAD, wrap(product.scratch, workspace));
  }
  product.primitive.execute(stream_, arguments);
  stream_.wait();
}

}  // namespace

extern const GemmProviderEntry onednn_gemm, onednn_packed_gemm;
const GemmProviderEntry onednn_gemm{
    "onednn", []() -> std::unique_ptr<GemmProvider> { return std::make_unique<OneDnnGemm>(Weights::as_they_are); }};
const GemmProviderEntry onednn_packed_gemm{
    "onednn-packed", []() -> std::unique_ptr<GemmProvider> { return std::make_unique<OneDnnGemm>(Weights::packed); }};

std::string_view OneDnnGemm::name() const {
  return (weights_ == Weights::packed ? onednn_packed_gemm : onednn_gemm).name;
}

std::string OneDnnGemm::version() const {
  const dnnl_version_t* version = dnnl_version();
  // The number after "ours" is increased when the computation of products or convolutions changes, so that they are
  // timed again.
  return fmt::format("{}.{}.{}, ours 2, instructions {:#x}", version->major, version->minor, version->patch,
                     static_cast<unsigned>(dnnl::get_effective_cpu_isa()));
}

}  // namespace mylos
