#include "core/kernels/activation.hpp"
#include "core/kernels/attention.hpp"
#include "core/kernels/batch_norm.hpp"
#include "core/kernels/cached_attention.hpp"
#include "core/kernels/cross_entropy.hpp"
#include "core/kernels/embedding.hpp"
#include "core/kernels/few_rows_product.hpp"
#include "core/kernels/gemm.hpp"
#include "core/kernels/largest_column.hpp"
#include "core/kernels/layer_norm.hpp"
#include "core/kernels/optimizer.hpp"
#include "core/kernels/pixels.hpp"
#include "core/kernels/pooling.hpp"
#include "core/kernels/rms_norm.hpp"
#include "core/kernels/rotary.hpp"
#include "core/kernels/swiglu.hpp"
#include "tests/support/arrays.hpp"
#include "tests/support/tool_callbacks.hpp"
#include "tests/support/work_recorder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mylos {
namespace {

using namespace tests;

/// One batch of two samples, and arrays of every shape that kernels use; H = 8, two heads.
struct LabelArrays {
  static constexpr std::size_t rows = 6, columns = 8;
  using Bf = bfloat16;

  Batch batch;
  ExecutionSpace space;
  DropoutKey dropout{.seed = 1, .step = 2, .site = 3, .probability = 0.1f};
  Matrix<Bf> x{"test::x", rows, columns}, y{"test::y", rows, columns}, z{"test::z", rows, columns};
  Vector<Bf> bias{"test::bias", columns};
  Vector<float> sums{"test::sums", columns}, mean{"test::mean", rows}, inverse{"test::inverse", rows};
  Vector<float> workspace{"test::workspace", column_sum_workspace(rows, columns)};
  Matrix<float> weight{"test::weight", columns, columns};
  LayerNormParameters<Bf> parameters{bias, bias, 1e-5f};
  LayerNormSaved<Bf> saved{z, mean, inverse};

  LabelArrays() {
    batch.reset(std::vector<std::size_t>{2, 4}, std::vector<std::uint32_t>{0, 1});
    batch.set_indices("tokens", std::vector<std::int32_t>{0, 1, 2, 1, 0, 7});
    batch.set("labels", std::vector<std::int32_t>{0, 1});
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

void run_rows(const LabelArrays& a) {
  using T = LabelArrays::Bf;
  const DropoutRows rows = dropout_rows(a.batch);
  bias_gelu<T>(a.space, a.bias, a.x, a.y);
  gelu<T>(a.space, a.x, a.y);
  gelu_backward<T>(a.space, a.x, a.y, a.sums, a.workspace);
  add_bias<T>(a.space, a.bias, a.x);
  add_column_sums<T>(a.space, a.x, a.sums, a.workspace);
  convert<float, T>(a.space, a.sums, a.bias);
  bias_dropout_residual_layer_norm<T>(a.space, a.dropout, rows, a.x, a.bias, a.y, a.parameters, a.saved, a.y);
  bias_dropout_residual_layer_norm_backward<T>(a.space, a.dropout, rows, a.y, a.parameters, a.saved, a.x, a.y, a.sums,
                                               a.sums, a.sums, a.workspace);
  layer_norm_dropout<T>(a.space, a.dropout, rows, a.parameters, a.saved, a.y);
  layer_norm_dropout_backward<T>(a.space, a.dropout, rows, a.y, a.parameters, a.saved, a.x, a.sums, a.sums,
                                 a.workspace);
  embedding_lookup<T>(a.space, a.batch.integers("tokens"), Matrix<T>("test::table", 8, 8), true, a.y,
                      a.batch.distinct("tokens"));
  embedding_gradient<T>(a.space, a.batch.groups("tokens"), a.y, a.weight);
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

void run_decoder(const LabelArrays& a) {
  using T = LabelArrays::Bf;
  const RmsNormParameters<T> parameters{a.bias, 1e-5f};
  const RmsNormSaved<T> saved{a.z, a.inverse};
  residual_rms_norm<T>(a.space, a.x, parameters, saved, a.y);
  residual_rms_norm<T>(a.space, {}, parameters, saved, a.y);
  rms_norm_again<T>(a.space, parameters, saved, a.y);
  rms_norm_backward<T>(a.space, parameters, saved, a.y, a.x, a.sums, a.workspace);
  const Matrix<float> table("test::table", LabelArrays::rows, 4);
  rotary_table(a.space, a.batch.integers("tokens"), {.pairs = 2, .radians = {1.0f, 0.1f}}, table);
  rotate<T>(a.space, table, 2, Rotation::forward, a.x);
  const Matrix<T> activation("test::activation", LabelArrays::rows, 4);
  swiglu<T>(a.space, a.x, activation);
  swiglu_backward<T>(a.space, a.x, activation);
  largest_column(a.space, a.weight, a.sums);
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

void run_losses_and_updates(const LabelArrays& a) {
  const Matrix<float> logits("test::logits", 6, 2), classes("test::classes", 2, 3), dclasses("test::d", 2, 3);
  const Matrix<float> dlogits("test::dlogits", 6, 2);
  const auto labels = a.batch.integers("labels");
  const Vector<float> losses("test::losses", 2), m("test::m", 8), v("test::v", 8), values("test::values", 8);
  span_cross_entropy<float>(a.space, a.batch.sample_starts(), logits, labels, labels, 1.0f, losses, dlogits);
  cross_entropy<float>(a.space, classes, labels, 1.0f, losses, dclasses);
  const Vector<UpdateControl> control("test::control", 1);
  adamw_update(a.space, {}, control, a.sums, values, m, v);
  sgd_update(a.space, {}, control, a.sums, values, m);
  const Vector<double> blocks("test::blocks", 1);
  block_squared_sums(a.space, a.sums, 0, blocks);
  sum_in_order(a.space, blocks, Vector<double>("test::sum", 1));
  const Vector<float> loss_scale("test::loss_scale", 1);
  select_loss_scale(a.space, {}, control, loss_scale);
  decide_update(a.space, {}, loss_scale, blocks, blocks, control);
}

void run_images(const LabelArrays& a) {
  using T = LabelArrays::Bf;
  // Six images of one pixel for BatchNorm, and one image of 2 x 3 pixels for pooling.
  const ImageGroups groups{a.batch.sample_starts(), a.batch.samples_of_rows(), 1};
  const BatchNormStatistics statistics{Matrix<float>("test::means", 2, LabelArrays::columns),
                                       Matrix<float>("test::inverses", 2, LabelArrays::columns)};
  const BatchNormInput<T> input{a.z, statistics, a.bias, a.bias};
  const BatchNormGradients gradients{a.sums, a.sums};
  const Vector<float> workspace("test::norms", batch_norm_workspace(2, LabelArrays::rows, 1, LabelArrays::columns));
  batch_norm_statistics<T>(a.space, groups, a.z, 1e-5f, statistics, {}, workspace);
  running_batch_norm_statistics(a.space, a.sums, a.sums, 1e-5f, {as_matrix(a.sums, 1, 8), as_matrix(a.sums, 1, 8)});
  batch_norm_relu<T>(a.space, groups, input, a.y);
  batch_norm_residual_relu<T>(a.space, groups, input, a.x, a.y);
  batch_norm_shortcut_relu<T>(a.space, groups, input, input, a.y);
  batch_norm_backward<T>(a.space, groups, input, a.y, a.x, gradients, workspace);
  batch_norm_relu_backward<T>(a.space, groups, input, a.y, {}, a.x, gradients, workspace);
  batch_norm_sum_relu_backward<T>(a.space, groups, input, a.y, a.x, {}, a.x, gradients, workspace);
  const PoolingShape shape{.height = 2, .width = 3};
  const Matrix<std::uint8_t> taken("test::taken", 2, LabelArrays::columns);
  const Matrix<T> pooled("test::pooled", 2, LabelArrays::columns);
  max_pool<T>(a.space, shape, a.x, pooled, taken);
  max_pool_backward<T>(a.space, shape, taken, pooled, pooled, a.x);
  average_pool<T>(a.space, a.x, pooled);
  average_pool_backward<T>(a.space, pooled, a.x);
  normalize_pixels<T>(a.space, {1, {0.5f}, {0.5f}}, Vector<std::uint8_t>("test::bytes", 6), Matrix<T>("test::v", 6, 1));
}

TEST(Labels, EveryKernelOfOursBeginsWithOurNameAndReportsItsWork) {
  const LabelArrays arrays;
  const KokkosRecorder launched;
  const WorkRecorder reported;
  for (const std::string& provider : gemm_providers()) run_products(arrays, provider);
  for (auto* run : {run_rows, run_attention, run_decoder, run_generation, run_images, run_losses_and_updates}) {
    run(arrays);
  }
  EXPECT_THAT(launched.foreign_launches(), ::testing::IsEmpty());
  EXPECT_TRUE(launched.launched("mylos::layer_norm::bias_dropout_residual"));
  EXPECT_TRUE(launched.launched("mylos::optimizer::adamw"));
  std::map<std::string, std::size_t> launches;
  for (const std::string& label : launched.launches()) {
    if (label.starts_with("mylos::") && label != "mylos::reserve_scratch") ++launches[label];  // that one does nothing
  }
  EXPECT_GE(launches.size(), 24u);
  for (const auto& [label, count] : launches) EXPECT_EQ(reported.calls(label), count) << label;
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
