#include "core/kernels/cuda/cudnn_library.hpp"
#include "core/numeric.hpp"
#include "tests/core/kernels/cudnn_stand_in/cudnn_stand_in.hpp"

#include <cuda_runtime.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

/// A stand-in for cuDNN 9: the functions of core/kernels/cuda/cudnn_library.hpp, computed naively in double on the
/// stand-in for CUDA's streams. It rejects what cuDNN does not support, and records calls that cuDNN would compute
/// wrongly or not survive. The environment variable CUDNN_STAND_IN_VERSION sets the version that it reports.
namespace mylos::cudnn {

struct Handle {
  cudaStream_t stream = nullptr;
};
struct TensorDescriptor {
  DataType type{};
  int n = 0, c = 0, h = 0, w = 0;
};
struct FilterDescriptor {
  DataType type{};
  int k = 0, c = 0, h = 0, w = 0;
};
struct ConvolutionDescriptor {
  int padding_h = 0, padding_w = 0, stride_h = 1, stride_w = 1;
  MathType math = MathType::standard;
};

namespace {

constexpr Status execution_failed = 5000;
constexpr std::uintptr_t alignment = 16, workspace_alignment = 256;

stand_in::CudnnState state;
thread_local std::string last_words;

Status refuse(Status status, const char* why) {
  last_words = std::string(why) + "\n";
  return status;
}

/// Records an error in a call that cuDNN might not detect.
Status note(const char* mistake) {
  if (state.mistake.empty()) state.mistake = mistake;
  return refuse(bad_parameter, mistake);
}

/// Reads and writes elements of an operand in its type.
double read(DataType type, const void* data, std::size_t i) {
  switch (type) {
    case DataType::half:
      return static_cast<double>(float(static_cast<const half*>(data)[i]));
    case DataType::bfloat16:
      return static_cast<double>(float(static_cast<const bfloat16*>(data)[i]));
    case DataType::float32:
      break;
  }
  return static_cast<double>(static_cast<const float*>(data)[i]);
}

std::vector<double> values(DataType type, const void* data, std::size_t count) {
  std::vector<double> all(count);
  for (std::size_t i = 0; i < count; ++i) all[i] = read(type, data, i);
  return all;
}

void write(DataType type, void* data, std::size_t i, double value) {
  const auto rounded = static_cast<float>(value);
  switch (type) {
    case DataType::half:
      static_cast<half*>(data)[i] = half(rounded);
      return;
    case DataType::bfloat16:
      static_cast<bfloat16*>(data)[i] = bfloat16(rounded);
      return;
    case DataType::float32:
      break;
  }
  static_cast<float*>(data)[i] = rounded;
}

std::size_t size(int extent) { return static_cast<std::size_t>(extent); }
std::size_t count(const TensorDescriptor& t) { return size(t.n) * size(t.c) * size(t.h) * size(t.w); }
std::size_t count(const FilterDescriptor& f) { return size(f.k) * size(f.c) * size(f.h) * size(f.w); }

/// A convolution with its descriptors.
struct Problem {
  TensorDescriptor x, y;
  FilterDescriptor w;
  ConvolutionDescriptor convolution;

  std::size_t filter(std::size_t o) const { return o * size(w.h) * size(w.w) * size(w.c); }

  /// Calls use(first channel of y's pixel, of x's pixel, position of the tap in a filter) for all pairs that are
  /// multiplied.
  template <class Use>
  void for_each_pair(const Use& use) const {
    for (int n = 0; n < y.n; ++n) {
      for (int r = 0; r < y.h; ++r) {
        for (int c = 0; c < y.w; ++c) {
          for (int tap = 0; tap < w.h * w.w; ++tap) {
            const int h = r * convolution.stride_h + tap / w.w - convolution.padding_h;
            const int v = c * convolution.stride_w + tap % w.w - convolution.padding_w;
            if (h < 0 || h >= x.h || v < 0 || v >= x.w) continue;
            use(size((n * y.h + r) * y.w + c) * size(y.c), size((n * x.h + h) * x.w + v) * size(x.c),
                size(tap) * size(w.c));
          }
        }
      }
    }
  }
};

Status check(const Problem& p) {
  const auto out = [](int extent, int padding, int kernel, int stride) {
    return (extent + 2 * padding - kernel) / stride + 1;
  };
  const ConvolutionDescriptor& c = p.convolution;
  if (p.x.n != p.y.n || p.x.c != p.w.c || p.y.c != p.w.k || p.y.h != out(p.x.h, c.padding_h, p.w.h, c.stride_h) ||
      p.y.w != out(p.x.w, c.padding_w, p.w.w, c.stride_w)) {
    return note("extents do not belong together");
  }
  if (p.x.type != p.y.type || p.x.type != p.w.type) return refuse(not_supported, "types differ");
  const bool is_float = p.x.type == DataType::float32;
  if (is_float && c.math != MathType::fma) return note("float operands rounded to TF32");
  // As the library does for kernels that could lie entirely in the padding.
  if (c.padding_h >= p.w.h || c.padding_w >= p.w.w) return refuse(not_supported, "padding of a kernel's size");
  return success;
}

/// Grows and shrinks with the number of images, like cuDNN's workspace.
std::size_t workspace_of(const Problem& p) {
  return (p.x.n % 2 == 0 ? 0 : count(p.w) * sizeof(float)) + state.extra_workspace;
}

Status choose(const Problem& p, std::initializer_list<AlgorithmFound> algorithms, int asked, int* found,
              AlgorithmFound* answers) {
  *found = 0;
  if (state.status_of_choice != success) return refuse(state.status_of_choice, "injected");
  if (const Status status = check(p); status != success) return status;
  for (AlgorithmFound answer : algorithms) {
    if (*found == asked) break;
    answer.memory = answer.memory == 0 ? workspace_of(p) : answer.memory;
    if (state.only_undeterministic) answer.determinism = Determinism::no;
    if (state.only_rounding) answer.math = MathType::tensor_op_allow_conversion;
    if (state.only_other_algorithms) answer.algorithm = 5;
    answers[(*found)++] = answer;
  }
  return success;
}

/// Returns an entry of the heuristic's list. If `memory` is 0, workspace_of determines the workspace.
AlgorithmFound algorithm(const Problem& p, int which, Determinism determinism = Determinism::yes,
                         Status status = success, std::size_t memory = 0) {
  return {which, status, 1.0f, memory, determinism, p.x.type == DataType::float32 ? MathType::fma : MathType::tensor_op,
          {}};
}

struct Call {
  Handle* handle;
  Problem problem;
  int algorithm;
  void* workspace;
  std::size_t bytes;
  std::vector<const void*> operands;
};

Status check_call(const Call& call, int wanted) {
  if (state.status_of_calls != success) return refuse(state.status_of_calls, "injected");
  if (const Status status = check(call.problem); status != success) return status;
  if (call.handle == nullptr || call.handle->stream == nullptr) return note("no stream was chosen");
  if (call.algorithm != wanted) return note("another algorithm than the deterministic one");
  if (call.bytes < workspace_of(call.problem)) return note("the workspace is too small");
  if (reinterpret_cast<std::uintptr_t>(call.workspace) % workspace_alignment != 0) return note("misaligned workspace");
  for (const void* operand : call.operands) {
    if (reinterpret_cast<std::uintptr_t>(operand) % alignment != 0) return note("misaligned operand");
  }
  return success;
}

/// Runs `work` on the call's stream and waits for it, because Kokkos computes on the host here and would not wait.
Status run(const Call& call, const std::function<void()>& work) {
  if (call.bytes > 0) std::memset(call.workspace, 0xFF, call.bytes);
  state.stream = call.handle->stream;
  const auto launch = [](void* argument) { (*static_cast<const std::function<void()>*>(argument))(); };
  if (cudaLaunchHostFunc(call.handle->stream, launch, const_cast<std::function<void()>*>(&work)) != cudaSuccess ||
      cudaStreamSynchronize(call.handle->stream) != cudaSuccess) {
    return refuse(execution_failed, "the stream");
  }
  return success;
}

float factor(const void* number) { return *static_cast<const float*>(number); }

/// Computes result = alpha sums + beta result.
void finish(DataType type, void* result, const std::vector<double>& sums, const void* alpha, const void* beta) {
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const double before = factor(beta) == 0.0f ? 0.0 : static_cast<double>(factor(beta)) * read(type, result, i);
    write(type, result, i, static_cast<double>(factor(alpha)) * sums[i] + before);
  }
}

template <class Descriptor>
Status create(Descriptor** descriptor) {
  ++state.descriptors;
  *descriptor = new Descriptor;
  return success;
}
template <class Descriptor>
Status destroy(Descriptor* descriptor) {
  --state.descriptors;
  delete descriptor;
  return success;
}

}  // namespace

extern "C" {

stand_in::CudnnState* cudnn_stand_in_state() { return &state; }

std::size_t cudnnGetVersion() {
  const char* const given = std::getenv("CUDNN_STAND_IN_VERSION");
  return given == nullptr ? 91900 : std::strtoul(given, nullptr, 10);
}
const char* cudnnGetErrorString(Status status) {
  if (status == execution_failed) return "CUDNN_STATUS_EXECUTION_FAILED";
  if (status >= not_supported) return "CUDNN_STATUS_NOT_SUPPORTED";
  return status == success ? "CUDNN_STATUS_SUCCESS" : "CUDNN_STATUS_BAD_PARAM";
}
void cudnnGetLastErrorString(char* message, std::size_t most) {
  std::strncpy(message, last_words.c_str(), most);
  last_words.clear();
}

Status cudnnCreate(Handle** handle) {
  ++state.handles;
  *handle = new Handle;
  return success;
}
Status cudnnDestroy(Handle* handle) {
  --state.handles;
  delete handle;
  return success;
}
Status cudnnSetStream(Handle* handle, void* stream) {
  handle->stream = static_cast<cudaStream_t>(stream);
  return success;
}

Status cudnnCreateTensorDescriptor(TensorDescriptor** made) { return create(made); }
Status cudnnDestroyTensorDescriptor(TensorDescriptor* tensor) { return destroy(tensor); }
Status cudnnSetTensor4dDescriptor(TensorDescriptor* tensor, TensorFormat format, DataType type, int n, int c, int h,
                                  int w) {
  if (format != TensorFormat::nhwc || n <= 0 || c <= 0 || h <= 0 || w <= 0) return note("a tensor that is not NHWC");
  *tensor = {type, n, c, h, w};
  return success;
}
Status cudnnCreateFilterDescriptor(FilterDescriptor** made) { return create(made); }
Status cudnnDestroyFilterDescriptor(FilterDescriptor* filter) { return destroy(filter); }
Status cudnnSetFilter4dDescriptor(FilterDescriptor* filter, DataType type, TensorFormat format, int k, int c, int h,
                                  int w) {
  if (format != TensorFormat::nhwc || k <= 0 || c <= 0 || h <= 0 || w <= 0) return note("a filter that is not NHWC");
  *filter = {type, k, c, h, w};
  return success;
}
Status cudnnCreateConvolutionDescriptor(ConvolutionDescriptor** made) { return create(made); }
Status cudnnDestroyConvolutionDescriptor(ConvolutionDescriptor* convolution) { return destroy(convolution); }
Status cudnnSetConvolution2dDescriptor(ConvolutionDescriptor* convolution, int padding_h, int padding_w, int stride_h,
                                       int stride_w, int dilation_h, int dilation_w, ConvolutionMode mode,
                                       DataType compute) {
  if (dilation_h != 1 || dilation_w != 1 || mode != ConvolutionMode::cross_correlation ||
      compute != DataType::float32) {
    return note("a convolution that is dilated, mirrored or not summed in float");
  }
  *convolution = {padding_h, padding_w, stride_h, stride_w};
  return success;
}
Status cudnnSetConvolutionMathType(ConvolutionDescriptor* convolution, MathType math) {
  convolution->math = math;
  return success;
}

/// Fastest first: an unsupported algorithm, one that is nondeterministic or needs too much workspace, then usable ones.
Status cudnnGetConvolutionForwardAlgorithm_v7(Handle*, TensorReference x, FilterReference w, ConvolutionReference c,
                                              TensorReference y, int asked, int* found, AlgorithmFound* answers) {
  const Problem p{*x, *y, *w, *c};
  return choose(p,
                {algorithm(p, 6), algorithm(p, 0, Determinism::yes, not_supported),
                 algorithm(p, 0, Determinism::yes, success, std::size_t{1} << 30), algorithm(p, 1), algorithm(p, 0)},
                asked, found, answers);
}
Status cudnnGetConvolutionBackwardDataAlgorithm_v7(Handle*, FilterReference w, TensorReference dy,
                                                   ConvolutionReference c, TensorReference dx, int asked, int* found,
                                                   AlgorithmFound* answers) {
  const Problem p{*dx, *dy, *w, *c};
  return choose(p, {algorithm(p, 0, Determinism::no), algorithm(p, 1)}, asked, found, answers);
}
Status cudnnGetConvolutionBackwardFilterAlgorithm_v7(Handle*, TensorReference x, TensorReference dy,
                                                     ConvolutionReference c, FilterReference dw, int asked, int* found,
                                                     AlgorithmFound* answers) {
  const Problem p{*x, *dy, *dw, *c};
  return choose(p, {algorithm(p, 0, Determinism::no), algorithm(p, 3, Determinism::no), algorithm(p, 1)}, asked, found,
                answers);
}

Status cudnnConvolutionForward(Handle* handle, const void* alpha, TensorReference x_of, const void* x,
                               FilterReference w_of, const void* w, ConvolutionReference c, int which, void* workspace,
                               std::size_t bytes, const void* beta, TensorReference y_of, void* y) {
  const Call call{handle, {*x_of, *y_of, *w_of, *c}, which, workspace, bytes, {x, w, y}};
  if (const Status status = check_call(call, 1); status != success) return status;
  ++state.forward;
  return run(call, [&] {
    const Problem& p = call.problem;
    const std::vector<double> images = values(p.x.type, x, count(p.x)), weights = values(p.w.type, w, count(p.w));
    std::vector<double> sums(count(p.y));
    p.for_each_pair([&](std::size_t to, std::size_t from, std::size_t tap) {
      for (std::size_t o = 0; o < size(p.y.c); ++o) {
        for (std::size_t i = 0; i < size(p.x.c); ++i) {
          sums[to + o] += images[from + i] * weights[p.filter(o) + tap + i];
        }
      }
    });
    finish(p.y.type, y, sums, alpha, beta);
  });
}

Status cudnnConvolutionBackwardData(Handle* handle, const void* alpha, FilterReference w_of, const void* w,
                                    TensorReference dy_of, const void* dy, ConvolutionReference c, int which,
                                    void* workspace, std::size_t bytes, const void* beta, TensorReference dx_of,
                                    void* dx) {
  const Call call{handle, {*dx_of, *dy_of, *w_of, *c}, which, workspace, bytes, {w, dy, dx}};
  if (const Status status = check_call(call, 1); status != success) return status;
  ++state.backward_data;
  return run(call, [&] {
    const Problem& p = call.problem;
    const std::vector<double> gradients = values(p.y.type, dy, count(p.y)), weights = values(p.w.type, w, count(p.w));
    std::vector<double> sums(count(p.x));
    p.for_each_pair([&](std::size_t from, std::size_t to, std::size_t tap) {
      for (std::size_t o = 0; o < size(p.y.c); ++o) {
        for (std::size_t i = 0; i < size(p.x.c); ++i) {
          sums[to + i] += gradients[from + o] * weights[p.filter(o) + tap + i];
        }
      }
    });
    finish(p.x.type, dx, sums, alpha, beta);
  });
}

Status cudnnConvolutionBackwardFilter(Handle* handle, const void* alpha, TensorReference x_of, const void* x,
                                      TensorReference dy_of, const void* dy, ConvolutionReference c, int which,
                                      void* workspace, std::size_t bytes, const void* beta, FilterReference dw_of,
                                      void* dw) {
  const Call call{handle, {*x_of, *dy_of, *dw_of, *c}, which, workspace, bytes, {x, dy, dw}};
  if (const Status status = check_call(call, 1); status != success) return status;
  ++state.backward_filter;
  return run(call, [&] {
    const Problem& p = call.problem;
    const std::vector<double> images = values(p.x.type, x, count(p.x)), gradients = values(p.y.type, dy, count(p.y));
    std::vector<double> sums(count(p.w));
    p.for_each_pair([&](std::size_t to, std::size_t from, std::size_t tap) {
      for (std::size_t o = 0; o < size(p.y.c); ++o) {
        for (std::size_t i = 0; i < size(p.x.c); ++i) {
          sums[p.filter(o) + tap + i] += images[from + i] * gradients[to + o];
        }
      }
    });
    finish(p.w.type, dw, sums, alpha, beta);
  });
}

}  // extern "C"
}  // namespace mylos::cudnn
