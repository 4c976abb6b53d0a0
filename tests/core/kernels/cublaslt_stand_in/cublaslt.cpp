#include "core/kernels/gpu/device_stream.hpp"
#include "core/numeric.hpp"
#include "tests/core/kernels/cublaslt_stand_in/cublaslt_stand_in.hpp"

#include <cstring>
#include <utility>

struct cublasLtContext {};
struct cublasLtPreference {
  std::size_t workspace = 0;
};
struct cublasLtLayout {
  cudaDataType_t type;
  std::uint64_t rows, columns;
  std::int64_t stride;
};
struct cublasLtProduct {
  cublasOperation_t a = CUBLAS_OP_N, b = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  void* bias = nullptr;
  std::int32_t bias_type = CUDA_R_32F;
};

namespace mylos::stand_in {

CublasLtState& cublaslt_state() {
  static CublasLtState state;
  return state;
}

namespace {

void expect(bool holds, const char* mistake) {
  if (!holds && cublaslt_state().mistake.empty()) cublaslt_state().mistake = mistake;
}

template <class Object, class... Values>
cublasStatus_t make(Object** object, Values... values) {
  *object = new Object{values...};
  ++cublaslt_state().objects;
  return CUBLAS_STATUS_SUCCESS;
}

template <class Object>
cublasStatus_t destroy(Object* object) {
  delete object;
  --cublaslt_state().objects;
  return CUBLAS_STATUS_SUCCESS;
}

float value_at(std::int32_t type, const void* data, std::size_t index) {
  if (type == CUDA_R_32F) return static_cast<const float*>(data)[index];
  if (type == CUDA_R_16F) return float(static_cast<const half*>(data)[index]);
  return float(static_cast<const bfloat16*>(data)[index]);
}

void set_value(std::int32_t type, void* data, std::size_t index, float value) {
  if (type == CUDA_R_32F) {
    static_cast<float*>(data)[index] = value;
  } else if (type == CUDA_R_16F) {
    static_cast<half*>(data)[index] = half(value);
  } else {
    static_cast<bfloat16*>(data)[index] = bfloat16(value);
  }
}

/// A column-major operand.
struct Operand {
  const void* data;
  cublasLtMatrixLayout_t layout;
  cublasOperation_t operation;

  float operator()(std::size_t row, std::size_t column) const {
    if (operation == CUBLAS_OP_T) std::swap(row, column);
    return value_at(layout->type, data, row + column * static_cast<std::size_t>(layout->stride));
  }
  std::uint64_t rows() const { return operation == CUBLAS_OP_T ? layout->columns : layout->rows; }
  std::uint64_t columns() const { return operation == CUBLAS_OP_T ? layout->rows : layout->columns; }
};

/// d = a b + beta d, with the epilogue.
void compute(const cublasLtProduct& product, const Operand& a, const Operand& b, float beta, void* d,
             const cublasLtLayout& layout) {
  expect(a.columns() == b.rows() && a.rows() == layout.rows && b.columns() == layout.columns, "shapes of a product");
  const auto stride = static_cast<std::size_t>(layout.stride);
  for (std::size_t j = 0; j < layout.columns; ++j) {
    for (std::size_t i = 0; i < layout.rows; ++i) {
      float sum = beta == 0.0f ? 0.0f : beta * value_at(layout.type, d, i + j * stride);
      for (std::size_t k = 0; k < a.columns(); ++k) sum += a(i, k) * b(k, j);
      if (i + 1 == layout.rows && j + 1 == layout.columns) sum += cublaslt_state().error;
      if (product.epilogue == CUBLASLT_EPILOGUE_BIAS) sum += value_at(product.bias_type, product.bias, i);
      set_value(layout.type, d, i + j * stride, sum);
    }
    if (product.epilogue != CUBLASLT_EPILOGUE_BGRADB) continue;
    float sum = j + 1 == layout.columns ? cublaslt_state().sums_error : 0.0f;
    for (std::size_t k = 0; k < b.rows(); ++k) sum += b(k, j);
    set_value(product.bias_type, product.bias, j, sum);
  }
}

bool is_aligned(const void* data, std::size_t alignment) {
  return reinterpret_cast<std::uintptr_t>(data) % alignment == 0;
}

}  // namespace
}  // namespace mylos::stand_in

/// Replaces core/kernels/gpu/device_stream.cpp.
void* mylos::cuda::stream_of(const ExecutionSpace&) {
  static int stream = 0;
  return &stream;
}

using namespace mylos::stand_in;

extern "C" {

#if defined(MYLOS_HIPBLASLT)  // has other forms of three functions, and none of the last
cublasStatus_t hipblasLtGetVersion(cublasLtHandle_t, int* version) {
  *version = cublaslt_state().hip_version;
  return CUBLAS_STATUS_SUCCESS;
}
#else
const char* cublasLtGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_SUCCESS ? "no error" : "an error of the stand-in";
}
size_t cublasLtGetVersion() { return 130000; }
cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                                       cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                       const cublasLtMatmulAlgo_t*, cublasLtMatmulHeuristicResult_t* result) {
  result->workspaceSize = 0;
  return CUBLAS_STATUS_SUCCESS;
}
#endif

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) { return make(handle); }
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) { return destroy(handle); }

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* product, cublasComputeType_t, cudaDataType_t scale) {
  expect(scale == CUDA_R_32F, "factors of a product");
  return make(product);
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t product) { return destroy(product); }
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, size_t bytes) {
  const auto set = [&](auto& member) {
    expect(bytes == sizeof member, "size of an attribute");
    std::memcpy(&member, value, sizeof member);
  };
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      set(product->a);
      break;
    case CUBLASLT_MATMUL_DESC_TRANSB:
      set(product->b);
      break;
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      set(product->epilogue);
      break;
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      set(product->bias);
      break;
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
      set(product->bias_type);
      break;
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType_t type, uint64_t rows,
                                          uint64_t columns, int64_t stride) {
  return make(layout, type, rows, columns, stride);
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) { return destroy(layout); }

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) { return make(preference); }
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) { return destroy(preference); }
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void* value,
                                                    size_t) {
  if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) std::memcpy(&preference->workspace, value, sizeof(size_t));
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t product, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t preference, int,
                                              cublasLtMatmulHeuristicResult_t* results, int* count) {
  const bool is_fused = product->epilogue != CUBLASLT_EPILOGUE_DEFAULT;
  ++cublaslt_state().choices;
  if (is_fused && cublaslt_state().fused_choice != CUBLAS_STATUS_SUCCESS) return cublaslt_state().fused_choice;
  *count = is_fused && !cublaslt_state().has_fused_algorithms ? 0 : 1;
  results->workspaceSize = preference->workspace;
  results->state = CUBLAS_STATUS_SUCCESS;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t product, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout,
                              const void* beta, const void* c, cublasLtMatrixLayout_t, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t*, void* workspace, size_t,
                              cudaStream_t stream) {
  CublasLtState& state = cublaslt_state();
  const bool is_fused = product->epilogue != CUBLASLT_EPILOGUE_DEFAULT;
  ++(is_fused ? state.fused : state.plain);
  expect(*static_cast<const float*>(alpha) == 1.0f && c == d, "a product that is scaled or not in place");
  expect(stream == mylos::cuda::stream_of({}), "stream of a product");
  expect(is_aligned(workspace, 256), "alignment of the workspace");
  expect(!is_fused || is_aligned(product->bias, 16), "alignment of a bias");
  const cublasStatus_t status = is_fused ? state.fused_launch : state.plain_launch;
  if (status == CUBLAS_STATUS_SUCCESS) {
    compute(*product, {a, a_layout, product->a}, {b, b_layout, product->b}, *static_cast<const float*>(beta), d,
            *d_layout);
  }
  return status;
}

}  // extern "C"
