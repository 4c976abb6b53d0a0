#include "core/kernels/products/gemm.hpp"
#include "core/kernels/products/gemm_providers.hpp"
#include "tests/core/kernels/cublaslt_stand_in/cublaslt_stand_in.hpp"
#include "tests/support/arrays.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

/// hipBLASLt, which is called through the names of cuBLASLt, with a stand-in for the library. test_gemm.cpp and
/// test_cublaslt.cpp, in the same program, compare its results with naive ones and let its epilogues fail.
namespace mylos {
namespace {

using namespace tests;

TEST(HipblasLt, IsAskedForItsVersion) {
  EXPECT_EQ(gemm_provider_obstacle("hipblaslt"), "");
  EXPECT_EQ(make_gemm_provider("hipblaslt")->version(), "1201");
}

TEST(HipblasLt, IsNotCalledBeforeVersion06) {
  stand_in::cublaslt_state().hip_version = 512;
  try {
    make_gemm_provider("hipblaslt")->version();
    FAIL() << "an older library was called";
  } catch (const std::runtime_error& error) {
    EXPECT_EQ(
        std::string(error.what()),
        "libhipblaslt.so.0 is hipBLASLt 0.5.12, and 0.6 of ROCm 6 is the oldest that is called; load ROCm's module, "
        "or its folder lib in LD_LIBRARY_PATH, or do without: `gemm kokkos-kernels`");
  }
  stand_in::cublaslt_state().hip_version = 1201;
}

}  // namespace
}  // namespace mylos
