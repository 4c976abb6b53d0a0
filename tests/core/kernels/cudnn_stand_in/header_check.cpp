#include "core/kernels/cuda/cudnn_library.hpp"

#include <cudnn.h>

#include <cstddef>
#include <type_traits>

/// Compares the declarations of core/kernels/cuda/cudnn_library.hpp with NVIDIA's header. scripts/test-cuda compiles
/// this file if it finds the header; it is never run.
namespace mylos::cudnn {
namespace {

template <class E>
constexpr int number(E value) {
  return static_cast<int>(value);
}

static_assert(CUDNN_MAJOR == 9);
static_assert(CUDNN_STATUS_SUCCESS == success && CUDNN_STATUS_BAD_PARAM == bad_parameter &&
              CUDNN_STATUS_NOT_SUPPORTED == not_supported && CUDNN_STATUS_INTERNAL_ERROR == after_not_supported);
static_assert(CUDNN_DATA_FLOAT == number(DataType::float32) && CUDNN_DATA_HALF == number(DataType::half) &&
              CUDNN_DATA_BFLOAT16 == number(DataType::bfloat16));
static_assert(CUDNN_TENSOR_NHWC == number(TensorFormat::nhwc));
static_assert(CUDNN_CROSS_CORRELATION == number(ConvolutionMode::cross_correlation));
static_assert(CUDNN_DEFAULT_MATH == number(MathType::standard) && CUDNN_TENSOR_OP_MATH == number(MathType::tensor_op) &&
              CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION == number(MathType::tensor_op_allow_conversion) &&
              CUDNN_FMA_MATH == number(MathType::fma));
static_assert(CUDNN_NON_DETERMINISTIC == number(Determinism::no) && CUDNN_DETERMINISTIC == number(Determinism::yes));
static_assert(CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM == forward_implicit_gemm &&
              CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM == forward_implicit_precomp_gemm &&
              CUDNN_CONVOLUTION_BWD_DATA_ALGO_1 == backward_data_1 &&
              CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1 == backward_filter_1);

template <class Theirs>
constexpr bool is_answer = sizeof(Theirs) == sizeof(AlgorithmFound) &&
                           offsetof(Theirs, algo) == offsetof(AlgorithmFound, algorithm) &&
                           offsetof(Theirs, status) == offsetof(AlgorithmFound, status) &&
                           offsetof(Theirs, time) == offsetof(AlgorithmFound, time) &&
                           offsetof(Theirs, memory) == offsetof(AlgorithmFound, memory) &&
                           offsetof(Theirs, determinism) == offsetof(AlgorithmFound, determinism) &&
                           offsetof(Theirs, mathType) == offsetof(AlgorithmFound, math);
static_assert(is_answer<cudnnConvolutionFwdAlgoPerf_t> && is_answer<cudnnConvolutionBwdDataAlgoPerf_t> &&
              is_answer<cudnnConvolutionBwdFilterAlgoPerf_t>);

/// True if pointers on both sides may point to these types.
template <class Ours, class Theirs>
constexpr bool is_same_object = std::is_same_v<Ours, Theirs>;
template <>
constexpr bool is_same_object<Handle, cudnnContext> = true;
template <>
constexpr bool is_same_object<TensorDescriptor, cudnnTensorStruct> = true;
template <>
constexpr bool is_same_object<FilterDescriptor, cudnnFilterStruct> = true;
template <>
constexpr bool is_same_object<ConvolutionDescriptor, cudnnConvolutionStruct> = true;
template <>
constexpr bool is_same_object<void, CUstream_st> = true;
template <>
constexpr bool is_same_object<AlgorithmFound, cudnnConvolutionFwdAlgoPerf_t> = true;
template <>
constexpr bool is_same_object<AlgorithmFound, cudnnConvolutionBwdDataAlgoPerf_t> = true;
template <>
constexpr bool is_same_object<AlgorithmFound, cudnnConvolutionBwdFilterAlgoPerf_t> = true;

/// True if both are passed alike: as numbers of the same size, including enumerations, or as pointers to the same type.
template <class Ours, class Theirs>
constexpr bool is_alike() {
  if constexpr (std::is_pointer_v<Ours> && std::is_pointer_v<Theirs>) {
    using To = std::remove_const_t<std::remove_pointer_t<Ours>>;
    using Other = std::remove_const_t<std::remove_pointer_t<Theirs>>;
    if constexpr (std::is_pointer_v<To>) {
      return is_alike<To, Other>();
    } else {
      return is_same_object<To, Other>;
    }
  } else if constexpr (std::is_void_v<Ours> || std::is_void_v<Theirs>) {
    return std::is_same_v<Ours, Theirs>;
  } else {
    return !std::is_pointer_v<Ours> && !std::is_pointer_v<Theirs> && sizeof(Ours) == sizeof(Theirs) &&
           std::is_floating_point_v<Ours> == std::is_floating_point_v<Theirs>;
  }
}

template <class Ours, class Theirs>
struct SameCall : std::false_type {};
template <class R, class... Arguments, class OtherR, class... Others>
requires(sizeof...(Arguments) == sizeof...(Others)) struct SameCall<R (*)(Arguments...), OtherR (*)(Others...)>
    : std::bool_constant<is_alike<R, OtherR>() && (is_alike<Arguments, Others>() && ...)> {
};

#define MYLOS_CUDNN_COMPARE(member, name, result, arguments) \
  static_assert(SameCall<decltype(Library::member), decltype(&::name)>::value, #name);
MYLOS_CUDNN_FUNCTIONS(MYLOS_CUDNN_COMPARE)
#undef MYLOS_CUDNN_COMPARE

}  // namespace
}  // namespace mylos::cudnn
