#pragma once

#include <cublasLt.h>

#include <cstddef>
#include <string>

/// Faults that a test injects into the stand-in for cuBLASLt, and counters that it reads.
namespace mylos::stand_in {

struct CublasLtState {
  // set by tests
  cublasStatus_t fused_choice = CUBLAS_STATUS_SUCCESS;  ///< returned by choices of algorithms with an epilogue
  bool has_fused_algorithms = true;                     ///< if not, such choices find none
  cublasStatus_t fused_launch = CUBLAS_STATUS_SUCCESS;  ///< returned by products with an epilogue
  cublasStatus_t plain_launch = CUBLAS_STATUS_SUCCESS;  ///< returned by products without
  int hip_version = 1201;                               ///< of hipBLASLt: 0.12.1
  float error = 0.0f;                                   ///< of the last element of each product
  float sums_error = 0.0f;                              ///< of the last of the sums of an epilogue

  // seen by tests
  std::size_t choices = 0;           ///< of algorithms that were asked for
  std::size_t fused = 0, plain = 0;  ///< launched with and without an epilogue, also if that failed
  std::size_t objects = 0;           ///< handles, descriptions, layouts and preferences that exist
  std::string mistake;  ///< the first incorrect call, for which the library might not compute the intended result
};

CublasLtState& cublaslt_state();

}  // namespace mylos::stand_in
