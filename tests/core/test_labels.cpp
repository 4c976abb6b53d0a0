#include "core/kernels/attention/attention.hpp"
#include "core/kernels/attention/cached_attention.hpp"
#include "core/kernels/norms/batch_norm.hpp"
#include "core/kernels/norms/head_norm.hpp"
#include "core/kernels/products/few_rows_product.hpp"
#include "core/kernels/products/gemm.hpp"
#include "core/kernels/updates/optimizer.hpp"
#include "tests/support/arrays.hpp"
#include "tests/support/tool_callbacks.hpp"
#include "tests/support/work_recorder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mylos {
namespace {

using namespace tests;

/// One batch of two samples, and arrays for kernels whose work test_work.cpp does not check; H = 8, two heads.
struct LabelArrays {
  static constexpr std::size_t rows = 6, columns = 8;
  using Bf = bfloat16;

  Batch batch;
  ExecutionSpace space;
  DropoutKey dropout{.seed = 1, .step = 2, .site = 3, .probability = 0.1f};
  Matrix<Bf> x{"test::x", rows, columns}, y{"test::y", rows, columns}, z{"test::z", rows, columns};
  Vector<Bf> bias{"test::bias", columns};
  Vector<float> sums{"test::sums", columns};
  Matrix<float> weight{"test::weight", columns, columns};

  LabelArrays() {
    batch.reset(std::vector<std::size_t>{2, 4}, std::vector<std::uint32_t>{0, 1});
    batch.set_indices("tokens", std::vector<std::int32_t>{0, 1, 2, 1, 0, 7});
  }
};

void run_products(const LabelArrays& a, const std::string& provider) {
  const Gemm gemm(provider);
  using T = LabelArrays::Bf;
  for (const EpilogueKind kind : {EpilogueKind::none, EpilogueKind::bias, EpilogueKind::bias_gelu}) {
    gemm.operator()<T, T>(a.space, Transpose::no, a.x, Transpose::yes, a.y, 0.0f, Matrix<T>(a.z.data(), 6, 6),
                          Epilogue<T>{kind, slice(a.bias, 0, 6), Matrix<T>("test::pre", 6, 6)});
  }
  gemm.operator()<T, T>(a.space, Transpose::yes, a.x, Transpose::no, a.y, 1.0f, Matrix<T>("test::c", 8, 8));
  gemm.operator()<T, float>(a.space, Transpose::yes, a.x, Transpose::no, a.y, 1.0f, a.weight);
}

void run_attention(const LabelArrays& a) {
  using T = LabelArrays::Bf;
  const AttentionShape shape{.heads = 2, .key_value_heads = 1, .head_size = 4, .scale = 0.5f, .causal = true};
  const PackedSequences sequences{a.batch.sample_starts(), a.batch.sample_ids(), a.batch.shape().longest,
                                  a.batch.host_sample_starts()};
  const Matrix<T> qkv("test::qkv", 6, shape.columns()), dqkv("test::dqkv", 6, shape.columns());
  const Matrix<float> log_sum_exp("test::log_sum_exp", 2, 6), row_sums("test::row_sums", 2, 6);
  attention_forward<T>(a.space, shape, sequences, a.dropout, qkv, a.x, log_sum_exp);
  attention_backward<T>(a.space, shape, sequences, a.dropout, qkv, a.x, log_sum_exp, a.y, dqkv, row_sums);
}

void run_head_norms(const LabelArrays& a) {
  using T = LabelArrays::Bf;
  const Vector<T> weight("test::weight", 2);
  const HeadNorms<T> norms{2, 1, weight, weight, 1e-5f};
  const Matrix<T> saved("test::saved", LabelArrays::rows, 6);
  const Vector<float> gradient("test::gradient", 2);
  head_norms<T>(a.space, norms, a.x, saved);
  head_norms_backward<T>(a.space, norms, saved, a.y, gradient, gradient,
                         Vector<float>("test::workspace", column_sum_workspace(LabelArrays::rows, 2)));
}

void run_generation(const LabelArrays& a) {
  using T = LabelArrays::Bf;
  const AttentionShape shape{.heads = 2, .key_value_heads = 1, .head_size = 2, .scale = 0.5f, .causal = true};
  const Vector<T> memory("test::cache", 16);
  const KeyValueCache<T> cache{memory, memory, 1, 8};
  const CachedRows rows{Vector<std::uint32_t>("test::slots", 1),
                        Vector<std::uint32_t>("test::samples", LabelArrays::rows), a.batch.integers("tokens"), 8, 17};
  const Vector<float> workspace("test::blocks", cached_attention_workspace(shape, LabelArrays::rows, 8));
  store_keys_values<T>(a.space, shape, a.x, rows, cache);
  cached_attention<T>(a.space, shape, a.x, rows, cache, workspace, Matrix<T>("test::out", LabelArrays::rows, 4));
  few_rows_product<T, T>(a.space, a.x, a.y, Matrix<T>("test::product", LabelArrays::rows, LabelArrays::rows));
}

void run_updates(const LabelArrays& a) {
  const Vector<UpdateControl> control("test::control", 1);
  const Vector<double> blocks("test::blocks", 1);
  sum_in_order(a.space, blocks, Vector<double>("test::sum", 1));
  const Vector<float> loss_scale("test::loss_scale", 1);
  select_loss_scale(a.space, {}, control, loss_scale);
  decide_update(a.space, {}, loss_scale, blocks, blocks, control);
  running_batch_norm_statistics(a.space, a.sums, a.sums, 1e-5f, {as_matrix(a.sums, 1, 8), as_matrix(a.sums, 1, 8)});
}

TEST(Labels, EveryKernelOfOursBeginsWithOurNameAndReportsItsWork) {
  const LabelArrays arrays;
  const KokkosRecorder launched;
  const WorkRecorder reported;
  for (const std::string& provider : gemm_providers()) run_products(arrays, provider);
  for (auto* run : {run_attention, run_head_norms, run_generation, run_updates}) run(arrays);
  expect_reported_launches(launched, reported);
}

// A separate function, because kernels may not be launched from the private functions that TEST creates.
void launch_foreign() {
  Kokkos::parallel_for("theirs::kernel", Kokkos::RangePolicy<ExecutionSpace>(0, 1), KOKKOS_LAMBDA(int){});
}

TEST(Labels, AForeignOneIsFound) {
  const KokkosRecorder recorder;
  launch_foreign();
  const Vector<float> array("test::array", 3);
  EXPECT_THAT(recorder.foreign_launches(), ::testing::ElementsAre("theirs::kernel"));
  ASSERT_EQ(recorder.allocations().size(), 1u);
  EXPECT_EQ(recorder.allocations()[0].label, "test::array");
  EXPECT_GE(recorder.allocations()[0].bytes, 12u);
}

}  // namespace
}  // namespace mylos
