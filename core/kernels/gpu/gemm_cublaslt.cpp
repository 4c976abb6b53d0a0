#include "core/base/error.hpp"
#include "core/kernels/activation.hpp"
#include "core/kernels/gpu/device_stream.hpp"
#include "core/kernels/products/gathered_convolution.hpp"
#include "core/kernels/products/gemm_provider.hpp"

#include <cublasLt.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <type_traits>
#include <utility>

/// Products by cuBLASLt: float, bfloat16 and half with float sums, on tensor cores if the type supports them. Float
/// uses tensor cores only as TF32, under a separate provider name. The bias is added in the product's epilogue if
/// possible, and a bias' gradient is summed in that of a weight's gradient. Where cuBLASLt fails with such an epilogue,
/// the product is computed without it. GELU is not fused: cuBLASLt has the tanh approximation, which differs by up to
/// 5e-4 from the exact one (by erf) that models here are trained with. cuBLASLt's matrices are column-major. A
/// row-major C (M, N) is a column-major C^T (N, M) = op(B)^T op(A)^T, so B is passed first and the transpositions stay
/// as they are.
/// ROCm's hipBLASLt has the same functions: core/kernels/hip/cublasLt.h names them as cuBLASLt does.
namespace mylos {
namespace {

#if defined(MYLOS_HIPBLASLT)
constexpr const char* library_name = "hipBLASLt";
constexpr bool checks_algorithms = false;
#else
constexpr const char* library_name = "cuBLASLt";
constexpr bool checks_algorithms = true;  ///< tells whether an algorithm computes another product than its own
#endif

/// Workspace of the algorithms, as recommended by NVIDIA from compute capability 9.0 on.
constexpr std::size_t workspace_size = std::size_t{32} << 20;
/// Alignment of the workspace. Kernels for 9.0 need it, and a View's elements start 128 bytes after the start of its
/// allocation.
constexpr std::size_t workspace_alignment = 256;

void check(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  fail(fmt::format("{}: {}: {}", library_name, what, cublasLtGetStatusString(status)));
}

template <class Descriptor, cublasStatus_t (*destroy)(Descriptor)>
struct Destroy {
  void operator()(Descriptor descriptor) const { destroy(descriptor); }
};
template <class Descriptor, cublasStatus_t (*destroy)(Descriptor)>
using Owned = std::unique_ptr<std::remove_pointer_t<Descriptor>, Destroy<Descriptor, destroy>>;
using Operation = Owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using Layout = Owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using Preference = Owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;
using Handle = Owned<cublasLtHandle_t, cublasLtDestroy>;

cudaDataType_t data_type(Precision precision) {
  switch (precision) {
    case Precision::float32:
      return CUDA_R_32F;
    case Precision::bfloat16:
      return CUDA_R_16BF;
    case Precision::float16:
      return CUDA_R_16F;
  }
  fail("a product with an element type without a name");
}

/// Describes a row-major (rows, columns) matrix as a column-major (columns, rows) one.
Layout make_layout(Precision precision, std::size_t rows, std::size_t columns) {
  cublasLtMatrixLayout_t layout = nullptr;
  check(cublasLtMatrixLayoutCreate(&layout, data_type(precision), columns, rows, static_cast<std::int64_t>(columns)),
        "describing a matrix");
  return Layout(layout);
}

template <class Value>
void set(const Operation& operation, cublasLtMatmulDescAttributes_t attribute, const Value& value) {
  check(cublasLtMatmulDescSetAttribute(operation.get(), attribute, static_cast<const void*>(&value), sizeof value),
        "describing a product");
}

/// The work of an epilogue of cuBLASLt besides the product.
enum class Fusion {
  none,
  bias,         ///< adds the bias
  column_sums,  ///< sums the columns of A
};

/// Algorithms access several bytes of a bias at a time. A bias with less alignment, as parameter tensors in a unit may
/// have, is added by a kernel instead.
constexpr std::uintptr_t bias_alignment = 16;

bool is_aligned_bias(const void* bias) { return reinterpret_cast<std::uintptr_t>(bias) % bias_alignment == 0; }

/// With fewer columns of A, the sums are left to a kernel: on an H200, the weight gradient of a span head, which has
/// two columns, takes 0.22 ms in a step with the epilogue and 0.014 ms without. No other number below 768 was tried.
constexpr std::size_t fewest_summed_columns = 64;

/// Returns the fusion that a call asks for.
Fusion fusion_of(const GemmCall& call) {
  const bool adds = call.epilogue == EpilogueKind::bias || call.epilogue == EpilogueKind::bias_gelu;
  return adds && is_aligned_bias(call.bias) ? Fusion::bias : Fusion::none;
}

/// Returns the epilogue of a fusion. B of cuBLASLt is A here, and k runs over the rows of both.
cublasLtEpilogue_t epilogue_of(Fusion fusion) {
  return fusion == Fusion::bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_BGRADB;
}

/// The description of a product for cuBLASLt, and the algorithm that computes it.
struct Plan {
  Operation operation;
  Layout a, b, c;
  std::optional<cublasLtMatmulAlgo_t> algorithm;  ///< nullopt if cuBLASLt has none
  Fusion fusion = Fusion::none;                   ///< what the epilogue does
};

/// Plans are for exact shapes, and packed batches have a new shape in almost every step, so many plans are kept.
constexpr std::size_t most_plans = 512;

/// Rounds `size` up to five significant bits.
std::size_t rounded_up(std::size_t size) {
  const int low_bits = std::max(0, static_cast<int>(std::bit_width(size)) - 5);
  const std::size_t unit = std::size_t{1} << low_bits;
  return (size + unit - 1) / unit * unit;
}

/// Returns the product from which the algorithm for `call` is taken. Rounds up only the extent that is not a row
/// length, so that the operands' alignment is unchanged.
GemmCall representative(GemmCall call) {
  if (call.transpose_a == Transpose::no) {
    call.m = rounded_up(call.m);
  } else if (call.transpose_b == Transpose::no) {
    call.k = rounded_up(call.k);
  }
  return call;
}

/// Returns the common alignment of all operands in bytes: a tensor in a unit starts where the previous one ends, so it
/// may be small.
std::uint32_t alignment_of(const GemmCall& call) {
  constexpr std::uintptr_t most = 256;  // cuBLASLt requires no more
  std::uintptr_t addresses = most;
  for (const void* operand : {call.a, call.b, static_cast<const void*>(product_target(call))}) {
    addresses |= reinterpret_cast<std::uintptr_t>(operand);
  }
  return std::uint32_t{1} << std::countr_zero(addresses);
}

/// Describes the limits for algorithms. `alignment` is that of all operands, in bytes.
Preference make_preference(std::uint32_t alignment) {
  cublasLtMatmulPreference_t made = nullptr;
  check(cublasLtMatmulPreferenceCreate(&made), "choosing an algorithm");
  Preference preference(made);
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    check(cublasLtMatmulPreferenceSetAttribute(made, attribute, &value, sizeof value), "choosing an algorithm");
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace_size);
  // Partial sums that are added up later must be kept in float: in 16 bits they would lose precision, and half would
  // overflow.
  prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
         static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  // By default, cuBLASLt chooses algorithms that read 16 bytes or more at a time, regardless of the addresses.
  for (const auto attribute :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    prefer(attribute, alignment);
  }
  return preference;
}

/// The properties by which an algorithm is chosen.
using Key = std::tuple<Transpose, Transpose, std::size_t, std::size_t, std::size_t, Precision, Precision, bool, Fusion,
                       std::uint32_t>;

/// `fusion` is the one asked for; a plan may do without.
Key key_of(const GemmCall& call, Fusion fusion) {
  return {call.transpose_a, call.transpose_b,  call.m, call.n, call.k, call.input, call.output, call.beta != 0.0f,
          fusion,           alignment_of(call)};
}

class CublasLtGemm : public GemmProvider {
 public:
  CublasLtGemm(std::string_view name, cublasComputeType_t float_products) : name_(name), float_(float_products) {}

  std::string_view name() const override { return name_; }
  std::string version() const override { return fmt::format("{}", cublasLtGetVersion()); }
  /// Includes the additional quarter of GemmWorkspace. Does not include the float copies for products without an
  /// algorithm in cuBLASLt.
  std::size_t workspace_bytes(std::span<const GemmProduct> products) override {
    const std::size_t asked = workspace_size + workspace_alignment + GatheredConvolution::bytes(products);
    return asked + asked / 4;
  }

  void multiply(const ExecutionSpace& space, const GemmCall& call) override {
    if (call.convolution) {
      return convolution_.compute(space, call, [&](const GemmCall& product) { multiply(space, product); });
    }
    Plan& plan = plan_for(call, fusion_of(call));
    if (plan.fusion != Fusion::none && !has_launched(space, plan, call, call.bias)) plan = make_unfused(call);
    if (plan.fusion != Fusion::none) return apply_rest_of_epilogue(space, call, true);
    if (plan.algorithm) {
      check(launch(space, plan, call), "a product");
      return apply_rest_of_epilogue(space, call, false);
    }
    if (call.input == Precision::float32) {
      fail(fmt::format("{} has no algorithm for {} x {} x {} in float", library_name, call.m, call.n, call.k));
    }
    const GemmCall product = floats_.widen(space, call);
    multiply(space, product);
    floats_.narrow(space, call, product);
  }

  bool multiply_and_sum(const ExecutionSpace& space, const GemmCall& call, float* sums) override {
    if (call.convolution || !is_aligned_bias(sums) || call.m < fewest_summed_columns) return false;
    Plan& plan = plan_for(call, Fusion::column_sums);
    if (plan.fusion != Fusion::column_sums) return false;
    if (has_launched(space, plan, call, sums)) return true;
    plan = Plan{};  // not tried again
    return false;
  }

 private:
  cublasLtHandle_t handle() {
    if (!handle_) {
      cublasLtHandle_t handle = nullptr;
      check(cublasLtCreate(&handle), "starting");
      handle_.reset(handle);
    }
    return handle_.get();
  }

  void* workspace() {
    auto* const memory = static_cast<std::byte*>(workspace_.get(workspace_size + workspace_alignment));
    const std::size_t beyond = reinterpret_cast<std::uintptr_t>(memory) % workspace_alignment;
    return beyond == 0 ? memory : memory + (workspace_alignment - beyond);
  }

  /// Launches a product; operands change between calls, but the shape does not.
  cublasStatus_t launch(const ExecutionSpace& space, const Plan& plan, const GemmCall& call) {
    const float one = 1.0f;
    void* const c = product_target(call);
    return cublasLtMatmul(handle(), plan.operation.get(), &one, call.b, plan.b.get(), call.a, plan.a.get(), &call.beta,
                          c, plan.c.get(), c, plan.c.get(), &*plan.algorithm, workspace(), workspace_size,
                          static_cast<cudaStream_t>(cuda::stream_of(space)));
  }

  /// Launches a product with its fusion, which reads or writes `bias`. Returns false if cuBLASLt refuses.
  bool has_launched(const ExecutionSpace& space, const Plan& plan, const GemmCall& call, const void* bias) {
    set(plan.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    return launch(space, plan, call) == CUBLAS_STATUS_SUCCESS;
  }

  /// Returns the plan of a call for which `fusion` is asked; valid until the next call.
  Plan& plan_for(const GemmCall& call, Fusion fusion) {
    const Key key = key_of(call, fusion);
    if (const auto found = plans_.find(key); found != plans_.end()) return found->second;
    if (plans_.size() == most_plans) plans_.clear();
    return plans_.emplace(key, make_plan(call, fusion)).first->second;
  }

  /// Creates a plan with the fusion if possible. Else one without it, or an empty one for column sums, whose caller
  /// asks for the product alone.
  Plan make_plan(const GemmCall& call, Fusion fusion) {
    if (fusion != Fusion::none) {
      if (std::optional<Plan> fused = make_fused(call, fusion)) return std::move(*fused);
    }
    return fusion == Fusion::column_sums ? Plan{} : make_unfused(call);
  }

  /// Returns nullopt for any failure, because the product can be computed without the epilogue.
  std::optional<Plan> make_fused(const GemmCall& call, Fusion fusion) {
    try {
      Plan plan = describe(call, fusion);
      plan.algorithm = algorithm_for(plan, call);
      if (plan.algorithm) return plan;
    } catch (const std::runtime_error&) {
    }
    return std::nullopt;
  }

  /// Creates a plan without an epilogue; it has no algorithm if cuBLASLt has none.
  Plan make_unfused(const GemmCall& call) {
    Plan plan = describe(call, Fusion::none);
    plan.algorithm = algorithm_for(plan, call);
    return plan;
  }

  Plan describe(const GemmCall& call, Fusion fusion) const {
    Plan plan;
    plan.fusion = fusion;
    const cublasComputeType_t compute = call.input == Precision::float32 ? float_ : CUBLAS_COMPUTE_32F;
    cublasLtMatmulDesc_t operation = nullptr;
    check(cublasLtMatmulDescCreate(&operation, compute, CUDA_R_32F), "describing a product");
    plan.operation.reset(operation);
    const auto letter = [](Transpose transpose) { return transpose == Transpose::no ? CUBLAS_OP_N : CUBLAS_OP_T; };
    set(plan.operation, CUBLASLT_MATMUL_DESC_TRANSA, letter(call.transpose_b));
    set(plan.operation, CUBLASLT_MATMUL_DESC_TRANSB, letter(call.transpose_a));
    if (fusion != Fusion::none) {
      set(plan.operation, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(fusion));
      set(plan.operation, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, static_cast<std::int32_t>(data_type(call.output)));
      // A placeholder address, never read: algorithms are chosen for biases with exactly this alignment.
      // NOLINTNEXTLINE(performance-no-int-to-ptr): there is no array
      set(plan.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, reinterpret_cast<const void*>(bias_alignment));
    }
    const std::size_t rows_a = rows_of_a(call), rows_b = rows_of_b(call);
    plan.a = make_layout(call.input, rows_a, call.m * call.k / rows_a);
    plan.b = make_layout(call.input, rows_b, call.k * call.n / rows_b);
    plan.c = make_layout(call.output, call.m, call.n);
    return plan;
  }

  /// Returns the algorithm of the representative if it also computes this product, else the heuristic's choice for this
  /// product.
  std::optional<cublasLtMatmulAlgo_t> algorithm_for(const Plan& plan, const GemmCall& call) {
    if (!checks_algorithms) return choose_algorithm(plan, call);
    const GemmCall like = representative(call);
    const Key key = key_of(like, plan.fusion);
    auto found = algorithms_.find(key);
    if (found == algorithms_.end()) {
      found = algorithms_.emplace(key, choose_algorithm(describe(like, plan.fusion), like)).first;
    }
    const auto& algorithm = found->second;
    return algorithm && computes(*algorithm, plan) ? algorithm : choose_algorithm(plan, call);
  }

  bool computes(const cublasLtMatmulAlgo_t& algorithm, const Plan& plan) {
    cublasLtMatmulHeuristicResult_t result{};
    const cublasStatus_t status = cublasLtMatmulAlgoCheck(handle(), plan.operation.get(), plan.b.get(), plan.a.get(),
                                                          plan.c.get(), plan.c.get(), &algorithm, &result);
    return status == CUBLAS_STATUS_SUCCESS && result.workspaceSize <= workspace_size;
  }

  /// Returns the first choice of cuBLASLt's heuristic for this shape; nullopt if there is none.
  std::optional<cublasLtMatmulAlgo_t> choose_algorithm(const Plan& plan, const GemmCall& call) {
    const Preference preference = make_preference(alignment_of(call));
    cublasLtMatmulHeuristicResult_t found{};
    int count = 0;
    const cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(handle(), plan.operation.get(), plan.b.get(), plan.a.get(), plan.c.get(),
                                       plan.c.get(), preference.get(), 1, &found, &count);
    if (status == CUBLAS_STATUS_NOT_SUPPORTED) return std::nullopt;
    check(status, "choosing an algorithm");
    return count > 0 && found.state == CUBLAS_STATUS_SUCCESS ? std::optional(found.algo) : std::nullopt;
  }

  /// Applies the epilogue, or only its GELU if the product has already added the bias.
  static void apply_rest_of_epilogue(const ExecutionSpace& space, const GemmCall& call, bool bias_is_added) {
    if (!bias_is_added) return apply_epilogue(space, call);
    if (call.epilogue != EpilogueKind::bias_gelu) return;
    with_type(call.output, [&]<class T>(T) {
      gelu<T>(space, ConstMatrix<T>(static_cast<const T*>(call.pre), call.m, call.n),
              Matrix<T>(static_cast<T*>(call.c), call.m, call.n));
    });
  }

  std::string_view name_;
  cublasComputeType_t float_;
  Handle handle_;
  GemmWorkspace workspace_;
  FloatOperands floats_;
  GatheredConvolution convolution_;
  std::map<Key, Plan> plans_;
  std::map<Key, std::optional<cublasLtMatmulAlgo_t>> algorithms_;  ///< by representative
};

#if defined(MYLOS_HIPBLASLT)
/// Called when the program starts, for the reason that gemm_kokkos_kernels.cpp has.
GemmProviderEntry hipblaslt_entry() {
  return {.name = "hipblaslt",
          .make = []() -> std::unique_ptr<GemmProvider> {
            return std::make_unique<CublasLtGemm>("hipblaslt", CUBLAS_COMPUTE_32F);
          },
          .obstacle = hipblaslt::obstacle,
          .untried = true};
}
#endif

}  // namespace

#if defined(MYLOS_HIPBLASLT)
extern const GemmProviderEntry hipblaslt_gemm;
const GemmProviderEntry hipblaslt_gemm = hipblaslt_entry();
#else
extern const GemmProviderEntry cublaslt_gemm, cublaslt_tf32_gemm;
const GemmProviderEntry cublaslt_gemm{"cublaslt", []() -> std::unique_ptr<GemmProvider> {
                                        return std::make_unique<CublasLtGemm>("cublaslt", CUBLAS_COMPUTE_32F);
                                      }};
const GemmProviderEntry cublaslt_tf32_gemm{"cublaslt-tf32",
                                           []() -> std::unique_ptr<GemmProvider> {
                                             return std::make_unique<CublasLtGemm>("cublaslt-tf32",
                                                                                   CUBLAS_COMPUTE_32F_FAST_TF32);
                                           },
                                           true};
#endif

}  // namespace mylos
