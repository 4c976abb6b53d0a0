#include "core/kernels/gpu/device_obstacle.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace mylos {
namespace {

const DeviceInfo v100{"Tesla V100-SXM2-32GB", "", nvidia_gpu(70), 0, 1},
    a100{"NVIDIA A100-SXM4-80GB", "", nvidia_gpu(80), 0}, l40{"NVIDIA L40", "", nvidia_gpu(89), 0},
    p100{"Tesla P100", "", nvidia_gpu(60), 0},
    mi250x{.name = "AMD Instinct MI250X", .id = "", .architecture = amd_gpu(0x90a)};

TEST(SearchObstacle, NamesWhatIsMissing) {
  EXPECT_EQ(search_obstacle({}),
            "this build computes on NVIDIA GPUs, and their driver (libcuda.so.1) is not on this machine; run it on a "
            "node with GPUs, or use a build for the CPU");
  EXPECT_EQ(
      search_obstacle({.has_driver = true, .driver_serves = false, .driver_version = 12040, .needed_version = 13000}),
      "the NVIDIA driver here supports CUDA 12.4, but this build needs 13.0; ask for a newer driver, or build with "
      "an older CUDA toolkit");
  EXPECT_EQ(search_obstacle({.has_driver = true}),
            "no GPU is visible here; ask the scheduler for one (--gpus-per-task=1), or use a build for the CPU");
  EXPECT_EQ(
      search_obstacle({.has_driver = true, .visible = " (CUDA_VISIBLE_DEVICES is '')"}),
      "no GPU is visible here (CUDA_VISIBLE_DEVICES is ''); ask the scheduler for one (--gpus-per-task=1), or use "
      "a build for the CPU");
}

TEST(SearchObstacle, NamesWhatIsMissingForGpusOfAmd) {
  EXPECT_EQ(
      search_obstacle({.vendor = amd}),
      "this build computes on AMD GPUs, and their driver (/dev/kfd) is not on this machine; run it on a node with "
      "GPUs, or use a build for the CPU");
  EXPECT_EQ(search_obstacle({.vendor = amd,
                             .has_driver = true,
                             .driver_serves = false,
                             .driver_version = 50'221'153,
                             .needed_version = 60'432'831}),
            "the AMD driver here supports HIP 5.2, but this build needs 6.4; ask for a newer driver, or build with an "
            "older HIP toolkit");
}

TEST(ShownVariables, AreThoseThatAreSet) {
  ::unsetenv("MYLOS_TEST_FIRST");
  ::setenv("MYLOS_TEST_SECOND", "0", 1);
  ::setenv("MYLOS_TEST_THIRD", "", 1);
  EXPECT_EQ(shown_variables({"MYLOS_TEST_FIRST"}), "");
  EXPECT_EQ(shown_variables({"MYLOS_TEST_FIRST", "MYLOS_TEST_SECOND", "MYLOS_TEST_THIRD"}),
            " (MYLOS_TEST_SECOND is '0', MYLOS_TEST_THIRD is '')");
}

TEST(SearchObstacle, IsNoneWhereADeviceIsServed) {
  EXPECT_EQ(search_obstacle({.has_driver = true, .driver_version = 13000, .needed_version = 12040, .devices = 1}), "");
}

TEST(ArchitectureObstacle, IsAnOlderDevice) {
  EXPECT_EQ(architecture_obstacle(a100, nvidia_gpu(80)), "");
  EXPECT_EQ(architecture_obstacle(l40, nvidia_gpu(80)), "");
  EXPECT_EQ(architecture_obstacle(a100, nvidia_gpu(70)), "") << "a later device takes what is built for an earlier one";
  EXPECT_EQ(architecture_obstacle(v100, nvidia_gpu(80)),
            "GPU 1 (Tesla V100-SXM2-32GB) has compute capability 7.0, but this build is for 8.0 and later; build with "
            "-DMYLOS_CUDA_ARCHITECTURE=70");
  EXPECT_EQ(architecture_obstacle(l40, nvidia_gpu(90)),
            "GPU 0 (NVIDIA L40) has compute capability 8.9, but this build is for 9.0 and later; build with "
            "-DMYLOS_CUDA_ARCHITECTURE=80");
  EXPECT_EQ(architecture_obstacle(p100, nvidia_gpu(70)),
            "GPU 0 (Tesla P100) has compute capability 6.0, but this build is for 7.0 and later; the oldest supported "
            "is 7.0: use another GPU");
}

TEST(ArchitectureObstacle, IsAnotherArchitectureOfAmd) {
  EXPECT_EQ(architecture_obstacle(mi250x, amd_gpu(0x90a)), "");
  EXPECT_EQ(
      architecture_obstacle(mi250x, amd_gpu(0x942)),
      "GPU 0 (AMD Instinct MI250X) is a gfx90a, but this build is for gfx942; build with the preset for it, or use "
      "another GPU");
}

TEST(PrecisionObstacle, IsTf32OnGpusOfAmd) {
  EXPECT_EQ(precision_obstacle(mi250x, Precision::bfloat16, false), "");
  EXPECT_EQ(precision_obstacle(mi250x, Precision::float32, true),
            "`tf32`: GPUs of AMD are not asked for it (AMD Instinct MI250X); leave it out");
}

TEST(PrecisionObstacle, IsWhatADeviceBeforeAmpereHasNot) {
  EXPECT_EQ(precision_obstacle(v100, Precision::bfloat16, false),
            "`precision bfloat16`: this GPU (Tesla V100-SXM2-32GB) has compute capability 7.0, but 8.0 is needed; use "
            "`precision half`, which it has");
  EXPECT_EQ(precision_obstacle(v100, Precision::float32, true),
            "`tf32`: this GPU (Tesla V100-SXM2-32GB) has compute capability 7.0, but 8.0 is needed; leave it out");
  EXPECT_EQ(precision_obstacle(v100, Precision::float32, false), "");
  EXPECT_EQ(precision_obstacle(v100, Precision::float16, false), "");
  for (const Precision precision : {Precision::float32, Precision::bfloat16, Precision::float16}) {
    EXPECT_EQ(precision_obstacle(a100, precision, precision == Precision::float32), "");
  }
}

}  // namespace
}  // namespace mylos
