#include "core/base/gpu_architecture.hpp"

#include <gtest/gtest.h>

namespace mylos {
namespace {

TEST(GpuArchitecture, IsNamedAsItsVendorDoes) {
  EXPECT_EQ(to_string(nvidia_gpu(89)), "compute capability 8.9");
  EXPECT_EQ(to_string(amd_gpu(0x90a)), "gfx90a");
  EXPECT_EQ(to_string(GpuArchitecture()), "none");
}

TEST(GpuArchitecture, IsOfOneVendor) {
  EXPECT_TRUE(nvidia_gpu(80).is_nvidia(80));
  EXPECT_FALSE(nvidia_gpu(80).is_nvidia(90));
  EXPECT_FALSE(amd_gpu(0x90a).is_nvidia());
  EXPECT_FALSE(GpuArchitecture().is_gpu());
}

TEST(GpuArchitecture, TellsWhichTypesAreMultiplied) {
  EXPECT_TRUE(nvidia_gpu(70).multiplies(Precision::float16));
  EXPECT_FALSE(nvidia_gpu(70).multiplies(Precision::bfloat16));
  for (const GpuArchitecture& both : {nvidia_gpu(80), amd_gpu(0x90a), amd_gpu(0x942)}) {
    EXPECT_TRUE(both.multiplies(Precision::bfloat16) && both.multiplies(Precision::float16));
    EXPECT_FALSE(both.multiplies(Precision::float32));
  }
  EXPECT_FALSE(GpuArchitecture().multiplies(Precision::float16));
}

}  // namespace
}  // namespace mylos
