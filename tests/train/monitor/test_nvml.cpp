#include "train/monitor/gpu_library.hpp"

#include "tests/support/temporary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

/// Uses the tests' own library; no GPU is queried.
namespace mylos::train {
namespace {

using testing::HasSubstr;
using testing::Not;
using tests::EnvironmentVariable;

constexpr const char* gpus = " GPU-00000000-0000-0000-0000-0000000000a0 GPU-00000000-0000-0000-0000-0000000000a1";
constexpr const char* second = "000000000000000000000000000000a1";

TEST(Nvml, TellsWhatAGpuDoes) {
  const EnvironmentVariable there("FAKE_NVML_GPUS", gpus), how("FAKE_NVML", "counted");
  const auto nvml = open_nvml(MYLOS_FAKE_NVML);
  GpuLibrary::Device device = nvml->find(second);
  ASSERT_NE(device, nullptr);
  EXPECT_EQ(nvml->name(device), "Fake GPU");
  const GpuReading state = nvml->read(device);
  EXPECT_EQ(state.utilization, 20.0);
  EXPECT_EQ(state.memory_utilization, 5.0);
  EXPECT_EQ(state.memory, 2.0 * (1 << 30));
  EXPECT_EQ(state.memory_total, 16.0 * (1 << 30));
  EXPECT_EQ(state.power, 200.0);
  EXPECT_EQ(state.energy, 5000.0);
  EXPECT_EQ(nvml->read(device).energy, 7000.0);
  EXPECT_EQ(nvml->find("000000000000000000000000000000ff"), nullptr);
  EXPECT_EQ(nvml->find(""), nullptr);
}

TEST(Nvml, FindsAMigInstance) {
  const EnvironmentVariable there("FAKE_NVML_GPUS", " MIG-00000000-0000-0000-0000-0000000000a1"),
      how("FAKE_NVML", "silent");
  const auto nvml = open_nvml(MYLOS_FAKE_NVML);
  EXPECT_NE(nvml->find(second), nullptr);
}

TEST(Nvml, WhatIsNotToldIsAbsent) {
  const EnvironmentVariable there("FAKE_NVML_GPUS", gpus), how("FAKE_NVML", "silent");
  const auto nvml = open_nvml(MYLOS_FAKE_NVML);
  const GpuReading state = nvml->read(nvml->find(second));
  EXPECT_TRUE(state.memory.has_value());
  EXPECT_FALSE(state.utilization || state.memory_utilization || state.power || state.energy);
}

TEST(Nvml, AGpuThatIsLostIsAnError) {
  const EnvironmentVariable there("FAKE_NVML_GPUS", gpus), how("FAKE_NVML", "lost");
  const auto nvml = open_nvml(MYLOS_FAKE_NVML);
  GpuLibrary::Device device = nvml->find("000000000000000000000000000000a0");
  EXPECT_TRUE(nvml->read(device).power && nvml->read(device).power);
  EXPECT_EQ(tests::error_of([&] { static_cast<void>(nvml->read(device)); }), "NVML: GPU is lost");
}

TEST(Nvml, ThatIsNotThereOrDoesNotStartIsOneLine) {
  EXPECT_THAT(tests::error_of([] { open_nvml("libno-such-nvml.so.1"); }),
              AllOf(HasSubstr("NVML cannot be loaded (libno-such-nvml.so.1"), Not(HasSubstr("\n"))));
  EXPECT_EQ(tests::error_of([] { open_nvml("libm.so.6"); }), "libm.so.6 has no nvmlInit_v2");
  const EnvironmentVariable how("FAKE_NVML", "broken");
  EXPECT_EQ(tests::error_of([] { const auto nvml = open_nvml(MYLOS_FAKE_NVML); }),
            "NVML does not start: Driver Not Loaded");
}

}  // namespace
}  // namespace mylos::train
