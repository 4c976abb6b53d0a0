#include "core/kernels/attention/cudnn_attention_sizes.hpp"

#include <gtest/gtest.h>

namespace mylos::attention {
namespace {

TEST(CudnnAttentionSizes, BoundsAreAtMostAQuarterLarger) {
  EXPECT_EQ(cudnn_bounds(1, 1), (CudnnBounds{1, 64}));
  EXPECT_EQ(cudnn_bounds(8, 64), (CudnnBounds{8, 64}));
  EXPECT_EQ(cudnn_bounds(9, 65), (CudnnBounds{10, 128}));
  EXPECT_EQ(cudnn_bounds(32, 384), (CudnnBounds{32, 384}));
  EXPECT_EQ(cudnn_bounds(33, 385), (CudnnBounds{40, 448}));
  EXPECT_EQ(cudnn_bounds(129, 2049), (CudnnBounds{160, 2560}));
  for (std::size_t size = 1; size < 5000; ++size) {
    const CudnnBounds bounds = cudnn_bounds(size, size);
    ASSERT_GE(bounds.sequences, size);
    ASSERT_LE(4 * bounds.sequences, 5 * size + 3);
    ASSERT_GE(bounds.longest, size);
    ASSERT_EQ(bounds.longest % 64, 0u);
    if (size >= 256) {
      ASSERT_LE(4 * bounds.longest, 5 * size + 3);
    }
    // Bounds of a bound are itself, and no smaller batch has larger ones: plans for the largest batch suffice.
    ASSERT_EQ(cudnn_bounds(bounds.sequences, bounds.longest), bounds);
    ASSERT_LE(cudnn_bounds(size, size).longest, cudnn_bounds(size + 1, size + 1).longest);
  }
}

TEST(CudnnAttentionSizes, ArraysDoNotOverlap) {
  const CudnnScratch scratch = cudnn_scratch({100, 64}, 3, false);
  EXPECT_GE(scratch.out_offsets, 101 * sizeof(std::int64_t));
  EXPECT_GE(scratch.statistics_offsets - scratch.out_offsets, 101 * sizeof(std::int64_t));
  EXPECT_GE(scratch.lengths - scratch.statistics_offsets, 101 * sizeof(std::int64_t));
  EXPECT_GE(scratch.statistics - scratch.lengths, 100 * sizeof(std::int32_t));
  EXPECT_GE(scratch.workspace - scratch.statistics, 100 * 3 * 64 * sizeof(float));
  for (const std::size_t at :
       {scratch.out_offsets, scratch.statistics_offsets, scratch.lengths, scratch.statistics, scratch.workspace}) {
    EXPECT_EQ(at % cudnn_alignment, 0u);
  }
  EXPECT_EQ(cudnn_scratch({100, 64}, 3, true).workspace, scratch.statistics);
}

TEST(CudnnAttentionSizes, PlansCountTheGradientsOfQueriesInFloat) {
  const AttentionShape shape{.heads = 12, .key_value_heads = 12, .head_size = 64, .kernel = AttentionKernel::cudnn};
  const TeamProcessor gpu{.threads = 1 << 18, .on_host = false, .architecture = nvidia_gpu(90)};
  const std::size_t forward = attention_forward_scratch(shape, 32, 384, gpu);
  const std::size_t backward = attention_backward_scratch(shape, 32, 384, gpu);
  const std::size_t rows = 32 * 12 * 384;
  EXPECT_GE(forward, rows * sizeof(float));
  EXPECT_LT(forward, rows * sizeof(float) + (std::size_t{2} << 20));
  EXPECT_EQ(backward - forward, rows * 65 * sizeof(float));
  const AttentionShape grouped{.heads = 12, .key_value_heads = 4, .head_size = 64, .kernel = AttentionKernel::cudnn};
  EXPECT_EQ(attention_backward_scratch(grouped, 32, 384, gpu), backward + 2 * rows * 64 * 2);
  EXPECT_EQ(attention_backward_scratch(shape, 0, 0, gpu), 0u);
}

/// bench/cudnn_plans printed these workspaces of the backward pass in bfloat16, with cuDNN 9.19.
TEST(CudnnAttentionSizes, PlansCoverTheWorkspaceOfCudnn) {
  struct Planned {
    std::size_t sequences, longest, heads, key_value_heads, head_size, on_h100, on_a100;
  };
  for (const Planned& planned :
       {Planned{1, 64, 12, 12, 32, 102400, 199936}, Planned{32, 384, 12, 12, 64, 38351872, 76089600},
        Planned{2, 8192, 16, 16, 64, 68159232, 135266688}, Planned{8, 2048, 32, 4, 64, 270535424, 404751104},
        Planned{8, 2048, 32, 8, 128, 538970880, 807404288}, Planned{8, 2048, 32, 32, 128, 270536704, 538968832}}) {
    const AttentionShape shape{.heads = planned.heads,
                               .key_value_heads = planned.key_value_heads,
                               .head_size = planned.head_size,
                               .kernel = AttentionKernel::cudnn};
    const std::size_t ours = cudnn_forward_scratch(shape, planned.sequences, planned.longest);
    const auto workspace = [&](const GpuArchitecture& device) {
      return cudnn_backward_scratch(shape, planned.sequences, planned.longest, device) - ours + (1u << 20);
    };
    EXPECT_GE(workspace(nvidia_gpu(90)), planned.on_h100);
    EXPECT_LE(workspace(nvidia_gpu(90)), planned.on_h100 + (1u << 20));
    EXPECT_GE(workspace(nvidia_gpu(80)), planned.on_a100);
    EXPECT_LE(workspace(nvidia_gpu(80)), planned.on_a100 + (1u << 20));
    EXPECT_EQ(workspace({}), workspace(nvidia_gpu(80)));
  }
}

}  // namespace
}  // namespace mylos::attention
