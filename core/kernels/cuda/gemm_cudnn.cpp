#include "core/base/error.hpp"
#include "core/kernels/cuda/cudnn_library.hpp"
#include "core/kernels/gpu/device_stream.hpp"
#include "core/kernels/products/gemm_provider.hpp"
#include "core/kernels/products/recently_used.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <compare>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

/// Convolutions by cuDNN's classic interface: images and weights in NHWC without copies, sums in float. Float operands
/// are multiplied without TF32. Only deterministic algorithms are used. The default provider computes everything else:
/// plain products, weight gradients of 16-bit operands (cuDNN would round them to 16 bits, but they must be float),
/// shapes without an algorithm, and operands that are not 16-byte aligned.
namespace mylos {
namespace {

/// Limits of the workspace; algorithms that need more are not used.
constexpr std::size_t largest_workspace = std::size_t{256} << 20, smallest_workspace = std::size_t{32} << 20;
constexpr std::size_t cudnn_alignment = 256;
/// Kernels read operands 16 bytes at a time.
constexpr std::uintptr_t operand_alignment = 16;
/// Large enough for three passes of the two dozen shapes of a residual network, with several numbers of images.
constexpr std::size_t most_cudnn_plans = 512;

template <class Descriptor>
using OwnedDescriptor = std::unique_ptr<Descriptor, cudnn::Status (*)(Descriptor*)>;

template <class Descriptor>
OwnedDescriptor<Descriptor> make_descriptor(const cudnn::Library& library, cudnn::Status (*create)(Descriptor**),
                                            cudnn::Status (*destroy)(Descriptor*)) {
  Descriptor* made = nullptr;
  cudnn::check(library, create(&made), "creating a descriptor");
  return {made, destroy};
}

cudnn::DataType cudnn_type(Precision precision) {
  switch (precision) {
    case Precision::bfloat16:
      return cudnn::DataType::bfloat16;
    case Precision::float16:
      return cudnn::DataType::half;
    case Precision::float32:
      break;
  }
  return cudnn::DataType::float32;
}

int as_int(std::size_t size) { return static_cast<int>(size); }

/// Any other math type would round float operands to TF32.
cudnn::MathType allowed_math(Precision precision) {
  return precision == Precision::float32 ? cudnn::MathType::fma : cudnn::MathType::tensor_op;
}

bool is_allowed(ConvolutionPass pass, int algorithm) {
  switch (pass) {
    case ConvolutionPass::input_gradient:
      return algorithm == cudnn::backward_data_1;
    case ConvolutionPass::weight_gradient:
      return algorithm == cudnn::backward_filter_1;
    case ConvolutionPass::forward:
      break;
  }
  return algorithm == cudnn::forward_implicit_gemm || algorithm == cudnn::forward_implicit_precomp_gemm;
}

bool is_unsupported(cudnn::Status status) {
  return status >= cudnn::not_supported && status < cudnn::after_not_supported;
}

/// The parameters of a plan.
struct PlanKey {
  Convolution convolution;
  std::size_t images = 0;
  Precision precision = Precision::float32;

  auto operator<=>(const PlanKey&) const = default;
};

PlanKey key_of_plan(const GemmProduct& product) { return {*product.convolution, batch_extent(product), product.input}; }

std::string to_string(const PlanKey& key) {
  constexpr const char* passes[] = {"convolution", "input gradient", "weight gradient"};
  const ConvolutionShape& shape = key.convolution.shape;
  return fmt::format("{} of {} images of {} x {} x {} to {} channels by kernels of {} x {} in {}",
                     passes[static_cast<std::size_t>(key.convolution.pass)], key.images, shape.height, shape.width,
                     shape.in, shape.out, shape.kernel_height, shape.kernel_width, to_string(key.precision));
}

/// The descriptors and the algorithm of a convolution.
struct ConvolutionPlan {
  OwnedDescriptor<cudnn::TensorDescriptor> x, y;
  OwnedDescriptor<cudnn::FilterDescriptor> weight;
  OwnedDescriptor<cudnn::ConvolutionDescriptor> convolution;
  bool is_supported = false;
  int algorithm = 0;
  std::size_t workspace = 0;  ///< in bytes
};

ConvolutionPlan describe(const cudnn::Library& library, const PlanKey& key) {
  const ConvolutionShape& shape = key.convolution.shape;
  const cudnn::DataType type = cudnn_type(key.precision);
  ConvolutionPlan plan{make_descriptor(library, library.create_tensor, library.destroy_tensor),
                       make_descriptor(library, library.create_tensor, library.destroy_tensor),
                       make_descriptor(library, library.create_filter, library.destroy_filter),
                       make_descriptor(library, library.create_convolution, library.destroy_convolution)};
  const auto set_tensor = [&](const auto& tensor, std::size_t channels, std::size_t height, std::size_t width) {
    cudnn::check(library,
                 library.set_tensor(tensor.get(), cudnn::TensorFormat::nhwc, type, as_int(key.images), as_int(channels),
                                    as_int(height), as_int(width)),
                 "describing images");
  };
  set_tensor(plan.x, shape.in, shape.height, shape.width);
  set_tensor(plan.y, shape.out, shape.out_height(), shape.out_width());
  cudnn::check(library,
               library.set_filter(plan.weight.get(), type, cudnn::TensorFormat::nhwc, as_int(shape.out),
                                  as_int(shape.in), as_int(shape.kernel_height), as_int(shape.kernel_width)),
               "describing weights");
  const int padding = as_int(shape.padding), stride = as_int(shape.stride);
  cudnn::check(library,
               library.set_convolution(plan.convolution.get(), padding, padding, stride, stride, 1, 1,
                                       cudnn::ConvolutionMode::cross_correlation, cudnn::DataType::float32),
               "describing a convolution");
  cudnn::check(library, library.set_math(plan.convolution.get(), allowed_math(key.precision)),
               "describing a convolution");
  return plan;
}

/// Returns whether all extents and element counts fit in the library's 32-bit integers.
bool is_small_enough(const GemmProduct& product) {
  constexpr auto most = static_cast<std::size_t>(std::numeric_limits<int>::max());
  const OperandSizes sizes = operand_sizes(product);
  return std::max({sizes.a, sizes.b, sizes.c, product.convolution->shape.padding}) <= most;
}

class CudnnConvolutions : public GemmProvider {
 public:
  CudnnConvolutions() : library_(cudnn::library()), others_(make_gemm_provider(default_gemm_provider())) {}

  std::string_view name() const override;
  /// The default provider computes the other products; its version is recorded separately.
  std::string version() const override { return library_.version; }
  /// Excludes the memory for unaligned operands and for convolutions that cuDNN rejects when they are called.
  std::size_t workspace_bytes(std::span<const GemmProduct> products) override;
  std::size_t growth_bytes() const override { return others_->growth_bytes(); }
  void multiply(const ExecutionSpace& space, const GemmCall& call) override;

 private:
  /// Returns the plan for `product`; null if cuDNN does not compute it.
  ConvolutionPlan* find(const GemmProduct& product);
  ConvolutionPlan make(const PlanKey& key);
  void choose_algorithm(const PlanKey& key, ConvolutionPlan& plan);
  cudnn::Status find_algorithms(ConvolutionPass pass, const ConvolutionPlan& plan,
                                std::span<cudnn::AlgorithmFound> answers, int& count);
  cudnn::Status compute(const ExecutionSpace& space, const ConvolutionPlan& plan, const GemmCall& call);
  cudnn::Handle* handle();
  void* workspace(const ConvolutionPlan& plan);

  const cudnn::Library& library_;
  std::unique_ptr<GemmProvider> others_;
  OwnedDescriptor<cudnn::Handle> handle_{nullptr, library_.destroy};
  RecentlyUsed<PlanKey, ConvolutionPlan> plans_{most_cudnn_plans};
  GemmWorkspace workspace_;
};

/// Returns the workspace to hold. The need does not grow with the images, so it is rounded up, and smaller batches find
/// it large enough.
std::size_t held_bytes(std::size_t workspace) {
  return std::bit_ceil(std::max(workspace, smallest_workspace)) + cudnn_alignment;
}

bool is_aligned(const GemmCall& call) {
  const auto address = [](const void* operand) { return reinterpret_cast<std::uintptr_t>(operand); };
  return (address(call.a) | address(call.b) | address(call.c)) % operand_alignment == 0;
}

cudnn::Handle* CudnnConvolutions::handle() {
  if (!handle_) {
    cudnn::Handle* made = nullptr;
    cudnn::check(library_, library_.create(&made), "starting");
    handle_.reset(made);
  }
  return handle_.get();
}

void* CudnnConvolutions::workspace(const ConvolutionPlan& plan) {
  auto* const memory = static_cast<std::byte*>(workspace_.get(held_bytes(plan.workspace)));
  const std::size_t beyond = reinterpret_cast<std::uintptr_t>(memory) % cudnn_alignment;
  return beyond == 0 ? memory : memory + (cudnn_alignment - beyond);
}

ConvolutionPlan* CudnnConvolutions::find(const GemmProduct& product) {
  if (!product.convolution || !is_small_enough(product)) return nullptr;
  const bool is_rounded =
      product.convolution->pass == ConvolutionPass::weight_gradient && product.input != Precision::float32;
  if (is_rounded) return nullptr;
  const PlanKey key = key_of_plan(product);
  ConvolutionPlan& plan = plans_.get(key, [&] { return make(key); });
  return plan.is_supported ? &plan : nullptr;
}

ConvolutionPlan CudnnConvolutions::make(const PlanKey& key) {
  ConvolutionPlan plan = describe(library_, key);
  choose_algorithm(key, plan);
  return plan;
}

cudnn::Status CudnnConvolutions::find_algorithms(ConvolutionPass pass, const ConvolutionPlan& plan,
                                                 std::span<cudnn::AlgorithmFound> answers, int& count) {
  const int asked = as_int(answers.size());
  const auto *const x = plan.x.get(), *const y = plan.y.get();
  const auto* const weight = plan.weight.get();
  const auto* const convolution = plan.convolution.get();
  switch (pass) {
    case ConvolutionPass::input_gradient:
      return library_.find_backward_data(handle(), weight, y, convolution, x, asked, &count, answers.data());
    case ConvolutionPass::weight_gradient:
      return library_.find_backward_filter(handle(), x, y, convolution, weight, asked, &count, answers.data());
    case ConvolutionPass::forward:
      break;
  }
  return library_.find_forward(handle(), x, weight, convolution, y, asked, &count, answers.data());
}

/// Chooses the first allowed algorithm of cuDNN's heuristic, which lists the fastest first.
void CudnnConvolutions::choose_algorithm(const PlanKey& key, ConvolutionPlan& plan) {
  const ConvolutionPass pass = key.convolution.pass;
  std::array<cudnn::AlgorithmFound, 8> answers{};
  int count = 0;
  const cudnn::Status status = find_algorithms(pass, plan, answers, count);
  // cuDNN reports unsupported shapes as bad parameters.
  if (is_unsupported(status) || (status >= cudnn::bad_parameter && status < cudnn::not_supported)) return;
  cudnn::check(library_, status, "choosing an algorithm for the " + to_string(key));
  for (const cudnn::AlgorithmFound& answer : std::span(answers).first(static_cast<std::size_t>(count))) {
    const bool keeps_float = key.precision != Precision::float32 || answer.math == cudnn::MathType::fma ||
                             answer.math == cudnn::MathType::standard;
    if (answer.status != cudnn::success || answer.determinism != cudnn::Determinism::yes || !keeps_float ||
        !is_allowed(pass, answer.algorithm) || answer.memory > largest_workspace) {
      continue;
    }
    if (key.precision != Precision::float32) {
      cudnn::check(library_, library_.set_math(plan.convolution.get(), answer.math), "describing a convolution");
    }
    plan.algorithm = answer.algorithm;
    plan.workspace = answer.memory;
    plan.is_supported = true;
    return;
  }
}

std::size_t CudnnConvolutions::workspace_bytes(std::span<const GemmProduct> products) {
  std::vector<GemmProduct> others;
  std::size_t most = 0;
  bool is_used = false;
  for (const GemmProduct& product : products) {
    const ConvolutionPlan* const plan = find(product);
    if (plan == nullptr) {
      others.push_back(product);
      continue;
    }
    is_used = true;
    most = std::max(most, plan->workspace);
  }
  const std::size_t own = is_used ? held_bytes(most) : 0;
  return own + own / 4 + (others.empty() ? 0 : others_->workspace_bytes(others));  // the additional quarter of
                                                                                   // GemmWorkspace
}

cudnn::Status CudnnConvolutions::compute(const ExecutionSpace& space, const ConvolutionPlan& plan,
                                         const GemmCall& call) {
  cudnn::check(library_, library_.set_stream(handle(), cuda::stream_of(space)), "choosing a stream");
  const float one = 1.0f;
  void* const memory = workspace(plan);
  const auto *const x = plan.x.get(), *const y = plan.y.get();
  const auto* const weight = plan.weight.get();
  const auto* const convolution = plan.convolution.get();
  switch (call.convolution->pass) {
    case ConvolutionPass::input_gradient:
      return library_.backward_data(handle(), &one, weight, call.b, y, call.a, convolution, plan.algorithm, memory,
                                    plan.workspace, &call.beta, x, call.c);
    case ConvolutionPass::weight_gradient:
      return library_.backward_filter(handle(), &one, x, call.b, y, call.a, convolution, plan.algorithm, memory,
                                      plan.workspace, &call.beta, weight, call.c);
    case ConvolutionPass::forward:
      break;
  }
  return library_.forward(handle(), &one, x, call.a, weight, call.b, convolution, plan.algorithm, memory,
                          plan.workspace, &call.beta, y, call.c);
}

void CudnnConvolutions::multiply(const ExecutionSpace& space, const GemmCall& call) {
  const GemmProduct product = product_of(call);
  ConvolutionPlan* const plan = is_aligned(call) ? find(product) : nullptr;
  if (plan == nullptr) return others_->multiply(space, call);
  const cudnn::Status status = compute(space, *plan, call);
  if (is_unsupported(status)) {  // nothing has been launched yet
    plan->is_supported = false;
    return others_->multiply(space, call);
  }
  cudnn::check(library_, status, to_string(key_of_plan(product)));
}

}  // namespace

extern const GemmProviderEntry cudnn_gemm;
const GemmProviderEntry cudnn_gemm{
    .name = "cudnn",
    .make = []() -> std::unique_ptr<GemmProvider> { return std::make_unique<CudnnConvolutions>(); },
    .obstacle = cudnn::obstacle,
    .convolutions_only = true};

std::string_view CudnnConvolutions::name() const { return cudnn_gemm.name; }

}  // namespace mylos
