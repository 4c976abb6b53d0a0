#include "core/kernels/attention/attention_candidates.hpp"

#include "core/kernels/attention/tensor_core_attention.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace mylos {
namespace {

using Kernel = AttentionKernel;
using Kernels = std::vector<Kernel>;

AttentionUse use_of(Precision precision, std::size_t head_size) {
  return {.shape = {.head_size = head_size}, .precision = precision};
}

TEST(AttentionCandidates, AreThoseOfTheDevice) {
  const auto candidates = [](const GpuArchitecture& device, Precision precision) {
    return planned_attention_candidates(use_of(precision, 64), device);
  };
  for (const GpuArchitecture& device : {nvidia_gpu(80), nvidia_gpu(90), nvidia_gpu(100)}) {
    EXPECT_EQ(candidates(device, Precision::bfloat16),
              (Kernels{Kernel::tensor_cores, Kernel::cudnn, Kernel::portable}));
  }
  EXPECT_EQ(candidates(nvidia_gpu(70), Precision::float16), (Kernels{Kernel::tensor_cores, Kernel::portable}));
  for (const Precision precision : {Precision::bfloat16, Precision::float16}) {
    EXPECT_EQ(candidates(amd_gpu(0x942), precision), (Kernels{Kernel::tensor_cores, Kernel::portable}));
  }
  EXPECT_EQ(candidates({}, Precision::bfloat16), Kernels{Kernel::portable});
}

TEST(AttentionCandidates, SupportTheElementTypeAndTheHeads) {
  const auto candidates = [](const GpuArchitecture& device, Precision precision, std::size_t head_size) {
    return planned_attention_candidates(use_of(precision, head_size), device);
  };
  EXPECT_EQ(candidates(nvidia_gpu(90), Precision::float32, 64), Kernels{Kernel::portable});
  EXPECT_EQ(candidates(nvidia_gpu(90), Precision::float16, 48), (Kernels{Kernel::cudnn, Kernel::portable}));
  EXPECT_EQ(candidates(nvidia_gpu(90), Precision::float16, 44), Kernels{Kernel::portable});
  EXPECT_EQ(candidates(nvidia_gpu(70), Precision::bfloat16, 64), Kernels{Kernel::portable});
}

TEST(AttentionCandidates, HaveDropoutAndTheSameBitsIfTheRunNeedsThem) {
  const Kernels without_cudnn = {Kernel::tensor_cores, Kernel::portable};
  AttentionUse use = use_of(Precision::bfloat16, 64);
  use.dropout = 0.1;
  EXPECT_EQ(planned_attention_candidates(use, nvidia_gpu(90)), without_cudnn);
  use.dropout = 0.0;
  use.deterministic = true;
  EXPECT_EQ(planned_attention_candidates(use, nvidia_gpu(90)), without_cudnn);
}

TEST(AttentionCandidates, CanBeRunHere) {
  const AttentionUse use = use_of(Precision::bfloat16, 64);
  Kernels expected;
  if (attention::tensor_core_architecture == nvidia_gpu(80)) expected.push_back(Kernel::tensor_cores);
  if (attention_obstacle(Kernel::cudnn, Precision::bfloat16, 64, nvidia_gpu(90)).empty())
    expected.push_back(Kernel::cudnn);
  expected.push_back(Kernel::portable);
  EXPECT_EQ(attention_candidates(use, nvidia_gpu(90)), expected);
  EXPECT_EQ(attention_candidates(use_of(Precision::float32, 64), nvidia_gpu(90)), Kernels{Kernel::portable});
  EXPECT_EQ(attention_candidates(use, {}), Kernels{Kernel::portable});
  for (const GpuArchitecture& device : {amd_gpu(0x90a), amd_gpu(0x942)}) {
    EXPECT_EQ(attention_candidates(use, device).size(), attention::tensor_core_architecture.is_amd() ? 2u : 1u);
  }
}

TEST(AttentionCandidates, AreTimedWithoutThePortableOneIfThereAreOthers) {
  EXPECT_EQ(fast_attention({Kernel::portable}), Kernels{Kernel::portable});
  EXPECT_EQ(fast_attention({Kernel::cudnn, Kernel::portable}), Kernels{Kernel::cudnn});
}

TEST(PlannedAttentionObstacle, IsThatOfThePlannedDevice) {
  const auto obstacle = planned_attention_obstacle;
  EXPECT_EQ(obstacle(Kernel::portable, Precision::float32, 20, {}), "");
  EXPECT_EQ(obstacle(Kernel::cudnn, Precision::bfloat16, 64, nvidia_gpu(90)), "");
  EXPECT_EQ(obstacle(Kernel::tensor_cores, Precision::bfloat16, 64, nvidia_gpu(80)), "");
  EXPECT_EQ(obstacle(Kernel::tensor_cores, Precision::float16, 64, nvidia_gpu(70)), "");
  EXPECT_EQ(obstacle(Kernel::cudnn, Precision::float16, 64, nvidia_gpu(70)),
            "attention by cuDNN needs a GPU of compute capability 8.0 or later, and this one has 7.0");
  EXPECT_EQ(obstacle(Kernel::tensor_cores, Precision::bfloat16, 64, amd_gpu(0x90a)), "");
  EXPECT_EQ(obstacle(Kernel::tensor_cores, Precision::float32, 64, amd_gpu(0x90a)),
            "tensor cores take bfloat16 and half, not float");
  EXPECT_EQ(obstacle(Kernel::cudnn, Precision::float16, 64, amd_gpu(0x90a)),
            "attention by cuDNN needs a GPU of compute capability 8.0 or later, and this one is a gfx90a");
  EXPECT_EQ(obstacle(Kernel::cudnn, Precision::float32, 64, nvidia_gpu(90)),
            "attention by cuDNN takes bfloat16 and half, not float");
  EXPECT_EQ(obstacle(Kernel::cudnn, Precision::float16, 20, nvidia_gpu(90)),
            "cuDNN takes heads of 8, 16, ... 128 elements, not of 20");
  EXPECT_EQ(obstacle(Kernel::tensor_cores, Precision::bfloat16, 64, nvidia_gpu(70)),
            "tensor cores of compute capability 7.0 take half, not bfloat16");
  EXPECT_EQ(obstacle(Kernel::tensor_cores, Precision::float16, 48, nvidia_gpu(80)),
            "tensor cores take heads of 32, 64 or 128 elements, not of 48");
  for (const Kernel kernel : {Kernel::tensor_cores, Kernel::cudnn}) {
    EXPECT_EQ(obstacle(kernel, Precision::float16, 64, {}), "it needs a GPU");
  }
}

}  // namespace
}  // namespace mylos
