#include "core/kernels/cudnn_attention_sizes.hpp"

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
  const TeamProcessor gpu{.threads = 1 << 18, .on_host = false};
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

}  // namespace
}  // namespace mylos::attention
