#pragma once

#include <cstddef>
#include <string>

/// cuDNN 9, loaded at first use, and the part of it that convolutions need. Its interface is declared here, so that
/// they need neither the library nor its header to build, which CUDA toolkits do not include. The interface is stable
/// within a major version, and tests/core/kernels/cudnn_stand_in/header_check.cpp compares this file with NVIDIA's
/// header.
namespace mylos::cudnn {

/// cudnnStatus_t. Codes from 2000 on mean a bad argument, codes from 3000 on an unsupported request.
using Status = int;
inline constexpr Status success = 0, bad_parameter = 2000, not_supported = 3000, after_not_supported = 4000;

enum class DataType : int { float32 = 0, half = 2, bfloat16 = 9 };
enum class TensorFormat : int { nhwc = 1 };
enum class ConvolutionMode : int { cross_correlation = 1 };
enum class MathType : int { standard = 0, tensor_op = 1, tensor_op_allow_conversion = 2, fma = 3 };
enum class Determinism : int { no = 0, yes = 1 };

/// The values of cudnnConvolutionFwdAlgo_t, cudnnConvolutionBwdDataAlgo_t and cudnnConvolutionBwdFilterAlgo_t that sum
/// products in the order of an implicit matrix product. The others (FFT, Winograd) have larger rounding errors.
inline constexpr int forward_implicit_gemm = 0, forward_implicit_precomp_gemm = 1, backward_data_1 = 1,
                     backward_filter_1 = 1;

/// cudnnConvolutionFwdAlgoPerf_t; those of the two backward passes have the same members.
struct AlgorithmFound {
  int algorithm;
  Status status;
  float time;
  std::size_t memory;  ///< bytes of workspace
  Determinism determinism;
  MathType math;
  int reserved[3];
};

struct Handle;
struct TensorDescriptor;
struct FilterDescriptor;
struct ConvolutionDescriptor;
using TensorReference = const TensorDescriptor*;
using FilterReference = const FilterDescriptor*;
using ConvolutionReference = const ConvolutionDescriptor*;

/// X(member, name in the library, result, arguments). Streams are cudaStream_t.
#define MYLOS_CUDNN_FUNCTIONS(X)                                                                                       \
  X(get_version, cudnnGetVersion, std::size_t, ())                                                                     \
  X(get_error_string, cudnnGetErrorString, const char*, (Status))                                                      \
  X(get_last_error_string, cudnnGetLastErrorString, void, (char*, std::size_t))                                        \
  X(create, cudnnCreate, Status, (Handle**))                                                                           \
  X(destroy, cudnnDestroy, Status, (Handle*))                                                                          \
  X(set_stream, cudnnSetStream, Status, (Handle*, void*))                                                              \
  X(create_tensor, cudnnCreateTensorDescriptor, Status, (TensorDescriptor**))                                          \
  X(destroy_tensor, cudnnDestroyTensorDescriptor, Status, (TensorDescriptor*))                                         \
  X(set_tensor, cudnnSetTensor4dDescriptor, Status,                                                                    \
    (TensorDescriptor*, TensorFormat, DataType, int n, int c, int h, int w))                                           \
  X(create_filter, cudnnCreateFilterDescriptor, Status, (FilterDescriptor**))                                          \
  X(destroy_filter, cudnnDestroyFilterDescriptor, Status, (FilterDescriptor*))                                         \
  X(set_filter, cudnnSetFilter4dDescriptor, Status,                                                                    \
    (FilterDescriptor*, DataType, TensorFormat, int k, int c, int h, int w))                                           \
  X(create_convolution, cudnnCreateConvolutionDescriptor, Status, (ConvolutionDescriptor**))                           \
  X(destroy_convolution, cudnnDestroyConvolutionDescriptor, Status, (ConvolutionDescriptor*))                          \
  X(set_convolution, cudnnSetConvolution2dDescriptor, Status,                                                          \
    (ConvolutionDescriptor*, int padding_h, int padding_w, int stride_h, int stride_w, int dilation_h, int dilation_w, \
     ConvolutionMode, DataType compute))                                                                               \
  X(set_math, cudnnSetConvolutionMathType, Status, (ConvolutionDescriptor*, MathType))                                 \
  X(find_forward, cudnnGetConvolutionForwardAlgorithm_v7, Status,                                                      \
    (Handle*, TensorReference x, FilterReference w, ConvolutionReference, TensorReference y, int asked, int* found,    \
     AlgorithmFound*))                                                                                                 \
  X(find_backward_data, cudnnGetConvolutionBackwardDataAlgorithm_v7, Status,                                           \
    (Handle*, FilterReference w, TensorReference dy, ConvolutionReference, TensorReference dx, int asked, int* found,  \
     AlgorithmFound*))                                                                                                 \
  X(find_backward_filter, cudnnGetConvolutionBackwardFilterAlgorithm_v7, Status,                                       \
    (Handle*, TensorReference x, TensorReference dy, ConvolutionReference, FilterReference dw, int asked, int* found,  \
     AlgorithmFound*))                                                                                                 \
  X(forward, cudnnConvolutionForward, Status,                                                                          \
    (Handle*, const void* alpha, TensorReference, const void* x, FilterReference, const void* w, ConvolutionReference, \
     int algorithm, void* workspace, std::size_t, const void* beta, TensorReference, void* y))                         \
  X(backward_data, cudnnConvolutionBackwardData, Status,                                                               \
    (Handle*, const void* alpha, FilterReference, const void* w, TensorReference, const void* dy,                      \
     ConvolutionReference, int algorithm, void* workspace, std::size_t, const void* beta, TensorReference, void* dx))  \
  X(backward_filter, cudnnConvolutionBackwardFilter, Status,                                                           \
    (Handle*, const void* alpha, TensorReference, const void* x, TensorReference, const void* dy,                      \
     ConvolutionReference, int algorithm, void* workspace, std::size_t, const void* beta, FilterReference, void* dw))

/// The functions found in the library.
struct Library {
#define MYLOS_CUDNN_MEMBER(member, name, result, arguments) result(*member) arguments = nullptr;
  MYLOS_CUDNN_FUNCTIONS(MYLOS_CUDNN_MEMBER)
#undef MYLOS_CUDNN_MEMBER
  std::size_t number = 0;  ///< 91900
  std::string version;     ///< "9.19.0"
};

/// The name of the library's file.
inline constexpr const char* library_file = "libcudnn.so.9";

/// Formats 91900 as "9.19.0".
std::string version_text(std::size_t number);

/// Loads `file`, using the search path of the system's loader; it stays loaded. Errors: std::runtime_error in one line
/// that says what to change, if the library is missing, lacks a function, or is not of major version 9.
Library load(const char* file);

/// Returns libcudnn.so.9, loaded once per process. Errors: as for load, at each call.
const Library& library();

/// Returns the reason why the library cannot be used here, in one line that says what to change; empty if it can.
std::string obstacle();

/// Throws std::runtime_error with `what` and cuDNN's message unless `status` is success.
void check(const Library& library, Status status, const std::string& what);

}  // namespace mylos::cudnn
