#pragma once

#include "core/gpu_runtime.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

/// hipBLASLt by the names of cuBLASLt, of which it has a part, for core/kernels/gpu/gemm_cublaslt.cpp. The library is
/// loaded at first use, and its types and numbers, which are those of version 0.6 (ROCm 6) and later, are declared
/// here, so that builds need no header of it.
#define MYLOS_HIPBLASLT

enum cublasStatus_t : int {
  CUBLAS_STATUS_SUCCESS = 0,
  CUBLAS_STATUS_INVALID_VALUE = 3,
  CUBLAS_STATUS_EXECUTION_FAILED = 5,
  CUBLAS_STATUS_NOT_SUPPORTED = 7
};
enum cudaDataType_t : int { CUDA_R_32F = 0, CUDA_R_16F = 2, CUDA_R_16BF = 14 };
enum cublasComputeType_t : int { CUBLAS_COMPUTE_32F = 2 };
enum cublasOperation_t : int { CUBLAS_OP_N = 111, CUBLAS_OP_T = 112 };
enum cublasLtEpilogue_t : int {
  CUBLASLT_EPILOGUE_DEFAULT = 1,
  CUBLASLT_EPILOGUE_BIAS = 4,
  CUBLASLT_EPILOGUE_BGRADB = 512
};
enum cublasLtMatmulDescAttributes_t : int {
  CUBLASLT_MATMUL_DESC_TRANSA = 0,
  CUBLASLT_MATMUL_DESC_TRANSB = 1,
  CUBLASLT_MATMUL_DESC_EPILOGUE = 2,
  CUBLASLT_MATMUL_DESC_BIAS_POINTER = 3,
  CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE = 4
};
/// hipBLASLt knows only the first one.
enum cublasLtMatmulPreferenceAttributes_t : int {
  CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1,
  CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES
};
enum cublasLtReductionScheme_t : int { CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE };

using cublasLtHandle_t = struct cublasLtContext*;
using cublasLtMatmulDesc_t = struct cublasLtProduct*;
using cublasLtMatrixLayout_t = struct cublasLtLayout*;
using cublasLtMatmulPreference_t = struct cublasLtPreference*;
struct cublasLtMatmulAlgo_t {
  std::uint8_t data[16];
  std::size_t most_workspace;
};
struct cublasLtMatmulHeuristicResult_t {
  cublasLtMatmulAlgo_t algo;
  std::size_t workspaceSize;
  cublasStatus_t state;
  float waves;
  int reserved[4];
};

/// The functions that are called, without the prefix, with their arguments; all return a status.
#define MYLOS_HIPBLASLT_FUNCTIONS(X)                                                                                   \
  X(Destroy, (cublasLtHandle_t))                                                                                       \
  X(MatmulDescCreate, (cublasLtMatmulDesc_t*, cublasComputeType_t, cudaDataType_t))                                    \
  X(MatmulDescDestroy, (cublasLtMatmulDesc_t))                                                                         \
  X(MatmulDescSetAttribute, (cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t, const void*, std::size_t))          \
  X(MatrixLayoutCreate,                                                                                                \
    (cublasLtMatrixLayout_t*, cudaDataType_t, std::uint64_t rows, std::uint64_t columns, std::int64_t stride))         \
  X(MatrixLayoutDestroy, (cublasLtMatrixLayout_t))                                                                     \
  X(MatmulPreferenceCreate, (cublasLtMatmulPreference_t*))                                                             \
  X(MatmulPreferenceDestroy, (cublasLtMatmulPreference_t))                                                             \
  X(MatmulAlgoGetHeuristic, (cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t a,                         \
                             cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,             \
                             cublasLtMatmulPreference_t, int asked, cublasLtMatmulHeuristicResult_t*, int* found))     \
  X(Matmul,                                                                                                            \
    (cublasLtHandle_t, cublasLtMatmulDesc_t, const void* alpha, const void* a, cublasLtMatrixLayout_t, const void* b,  \
     cublasLtMatrixLayout_t, const void* beta, const void* c, cublasLtMatrixLayout_t, void* d, cublasLtMatrixLayout_t, \
     const cublasLtMatmulAlgo_t*, void* workspace, std::size_t workspace_size, cudaStream_t))
/// Those whose counterparts differ.
#define MYLOS_HIPBLASLT_OTHER_FUNCTIONS(X) \
  X(Create, (cublasLtHandle_t*))           \
  X(GetVersion, (cublasLtHandle_t, int*))  \
  X(MatmulPreferenceSetAttribute,          \
    (cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t, const void*, std::size_t))

namespace mylos::hipblaslt {

struct Library {
#define MYLOS_HIPBLASLT_MEMBER(name, arguments) cublasStatus_t(*name) arguments = nullptr;
  MYLOS_HIPBLASLT_FUNCTIONS(MYLOS_HIPBLASLT_MEMBER)
  MYLOS_HIPBLASLT_OTHER_FUNCTIONS(MYLOS_HIPBLASLT_MEMBER)
#undef MYLOS_HIPBLASLT_MEMBER
};

/// Returns the library, loaded once per process. Errors: std::runtime_error that says what to change.
const Library& library();

/// Returns why the library cannot be used, in one line that says what to change; empty if it can.
std::string obstacle();

}  // namespace mylos::hipblaslt

#define MYLOS_HIPBLASLT_CALL(name, arguments)               \
  template <class... Arguments>                             \
  cublasStatus_t cublasLt##name(Arguments... arguments_) {  \
    return mylos::hipblaslt::library().name(arguments_...); \
  }
MYLOS_HIPBLASLT_FUNCTIONS(MYLOS_HIPBLASLT_CALL)
#undef MYLOS_HIPBLASLT_CALL

extern "C" {
/// Fails for versions before 0.6, whose types have other numbers.
cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle);
/// Returns 1201 for 0.12.1. A device must be in use.
std::size_t cublasLtGetVersion();
const char* cublasLtGetStatusString(cublasStatus_t status);
}

/// Leaves out what hipBLASLt does not know.
template <class Value>
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const Value* value,
                                                    std::size_t size) {
  if (attribute != CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) return CUBLAS_STATUS_SUCCESS;
  return mylos::hipblaslt::library().MatmulPreferenceSetAttribute(preference, attribute, value, size);
}

/// Never called: hipBLASLt cannot tell whether an algorithm computes another product than its own.
template <class... Arguments>
cublasStatus_t cublasLtMatmulAlgoCheck(Arguments...) {
  return CUBLAS_STATUS_NOT_SUPPORTED;
}
