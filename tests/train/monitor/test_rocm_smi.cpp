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

constexpr const char *first_gcd = "0000:c1:00-0123456789abcdef", *second_gcd = "0001:c6:00-0123456789abcdef";

TEST(RocmSmi, TellsWhatAGpuDoes) {
  const auto smi = open_rocm_smi(MYLOS_FAKE_ROCM_SMI);
  GpuLibrary::Device device = smi->find(second_gcd);
  ASSERT_NE(device, nullptr);
  EXPECT_EQ(smi->name(device), "Fake Instinct");
  const GpuReading state = smi->read(device);
  EXPECT_EQ(state.utilization, 20.0);
  EXPECT_EQ(state.memory_utilization, 5.0);
  EXPECT_EQ(state.memory, 2.0 * (1 << 30));
  EXPECT_EQ(state.memory_total, 64.0 * (1 << 30));
  EXPECT_DOUBLE_EQ(state.power.value(), 200.0);
  EXPECT_DOUBLE_EQ(state.energy.value(), 61.0);
  EXPECT_DOUBLE_EQ(smi->read(device).energy.value(), 61.0 + 30.5);
  EXPECT_EQ(smi->read(smi->find(first_gcd)).utilization, 10.0);
  EXPECT_EQ(smi->find("0000:c2:00-0123456789abcdef"), nullptr);
  EXPECT_EQ(smi->find(""), nullptr);
}

TEST(RocmSmi, WhatIsNotToldIsAbsent) {
  const EnvironmentVariable how("FAKE_ROCM_SMI", "silent");
  const auto smi = open_rocm_smi(MYLOS_FAKE_ROCM_SMI);
  const GpuReading state = smi->read(smi->find(first_gcd));
  EXPECT_TRUE(state.memory.has_value());
  EXPECT_FALSE(state.utilization || state.memory_utilization || state.power || state.energy);
}

TEST(RocmSmi, TheSecondDeviceOfAPackageHasNoPower) {
  const EnvironmentVariable how("FAKE_ROCM_SMI", "second");
  const auto smi = open_rocm_smi(MYLOS_FAKE_ROCM_SMI);
  const GpuReading state = smi->read(smi->find(second_gcd));
  EXPECT_TRUE(state.utilization.has_value());
  EXPECT_FALSE(state.power || state.energy);
}

TEST(RocmSmi, ThatIsNotThereOrDoesNotStartIsOneLine) {
  EXPECT_THAT(tests::error_of([] { open_rocm_smi("libno-such-smi.so.1"); }),
              AllOf(HasSubstr("ROCm SMI cannot be loaded (libno-such-smi.so.1"), Not(HasSubstr("\n"))));
  EXPECT_EQ(tests::error_of([] { open_rocm_smi("libm.so.6"); }), "ROCm SMI has no rsmi_init");
  const EnvironmentVariable how("FAKE_ROCM_SMI", "broken");
  EXPECT_EQ(tests::error_of([] { const auto smi = open_rocm_smi(MYLOS_FAKE_ROCM_SMI); }), "ROCm SMI does not start: 8");
}

}  // namespace
}  // namespace mylos::train
