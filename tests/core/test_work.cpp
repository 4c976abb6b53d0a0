#include "core/work.hpp"

#include "core/kernels/activation.hpp"
#include "core/kernels/attention/attention_work.hpp"
#include "core/kernels/column_sums.hpp"
#include "core/kernels/cross_entropy.hpp"
#include "core/kernels/elementwise.hpp"
#include "core/kernels/embedding.hpp"
#include "core/kernels/largest_column.hpp"
#include "core/kernels/norms/batch_norm.hpp"
#include "core/kernels/norms/layer_norm.hpp"
#include "core/kernels/norms/rms_norm.hpp"
#include "core/kernels/pixels.hpp"
#include "core/kernels/pooling.hpp"
#include "core/kernels/products/gemm_label.hpp"
#include "core/kernels/rotary.hpp"
#include "core/kernels/swiglu.hpp"
#include "core/kernels/updates/adamw.hpp"
#include "core/kernels/updates/lion.hpp"
#include "core/kernels/updates/sgd.hpp"
#include "tests/support/arrays.hpp"
#include "tests/support/work_recorder.hpp"

#include <gtest/gtest.h>

namespace mylos {
namespace {

using tests::WorkRecorder;

/// Returns the bytes of arrays, counting each element once.
template <class... Arrays>
double bytes_of_arrays(const Arrays&... arrays) {
  return (0.0 + ... + static_cast<double>(arrays.size() * sizeof(*arrays.data())));
}

/// Returns the work that `launch` reports under `label`, in one call.
template <class Launch>
Work reported(const char* label, const Launch& launch) {
  const tests::KokkosRecorder launched;
  const WorkRecorder recorder;
  launch();
  Kokkos::fence("test::reported");
  tests::expect_reported_launches(launched, recorder);
  EXPECT_EQ(recorder.calls(label), 1u) << label;
  const auto found = recorder.work().find(label);
  return found == recorder.work().end() ? Work{} : found->second;
}

template <class Launch>
void expect_work(const char* label, const Work& work, const Launch& launch) {
  EXPECT_EQ(reported(label, launch), work) << label;
}

/// More rows than two blocks of column sums, so that the last block is partial.
constexpr std::size_t norm_rows = 2 * column_sum_rows + 3, columns = 7;

template <class T>
class WorkOf : public ::testing::Test {
 protected:
  ExecutionSpace space;
  Matrix<T> x{"x", norm_rows, columns}, y{"y", norm_rows, columns}, z{"z", norm_rows, columns};
  Vector<T> bias{"bias", columns};
  Vector<float> sums{"sums", columns}, mean{"mean", norm_rows}, inverse{"inverse", norm_rows};
  Vector<float> workspace{"workspace", column_sum_workspace(norm_rows, columns)};
  Matrix<float> partial{"partial", 3, columns};  ///< for one array: three blocks
  LayerNormParameters<T> parameters{bias, bias, 1e-5f};
  LayerNormSaved<T> saved{z, mean, inverse};
  DropoutKey dropout{.seed = 1, .step = 2, .site = 3, .probability = 0.1f};
  Batch batch;
  static constexpr double elements = static_cast<double>(norm_rows * columns);

  void SetUp() override {
    batch.reset(std::vector<std::size_t>{norm_rows}, std::vector<std::uint32_t>{0});
    std::vector<std::int32_t> tokens(norm_rows, 3);
    tokens[1] = 4;
    batch.set_indices("tokens", tokens);
  }
};

using Elements = ::testing::Types<float, bfloat16>;  // bytes depend on their sizes alone
TYPED_TEST_SUITE(WorkOf, Elements);

TYPED_TEST(WorkOf, ActivationsReadAndWriteTheirArrays) {
  using T = TypeParam;
  const auto& [x, y, bias, sums] = std::tie(this->x, this->y, this->bias, this->sums);
  const ExecutionSpace& space = this->space;
  const double n = this->elements;
  expect_work("mylos::activation::bias_gelu", {35.0 * n, bytes_of_arrays(x, x, y)},
              [&] { bias_gelu<T>(space, bias, x, y); });
  expect_work("mylos::activation::gelu", {34.0 * n, bytes_of_arrays(x, y)}, [&] { gelu<T>(space, x, y); });
  expect_work("mylos::activation::gelu_backward", {77.0 * n, bytes_of_arrays(x, x, y, y, this->partial)},
              [&] { gelu_backward<T>(space, x, y, sums, this->workspace); });
  expect_work("mylos::activation::add_bias", {n, bytes_of_arrays(x, x)}, [&] { add_bias<T>(space, bias, x); });
  expect_work("mylos::activation::convert", {0.0, bytes_of_arrays(bias, sums)},
              [&] { convert<T, float>(space, bias, sums); });
}

TYPED_TEST(WorkOf, ColumnSumsGoThroughPartialSums) {
  using T = TypeParam;
  const auto launch = [&] { add_column_sums<T>(this->space, this->x, this->sums, this->workspace); };
  expect_work("mylos::activation::add_column_sums", {this->elements, bytes_of_arrays(this->x, this->partial)}, launch);
  expect_work("mylos::column_sums::add", {3.0 * columns, bytes_of_arrays(this->partial)}, launch);
}

TYPED_TEST(WorkOf, LayerNormKeepsTwoFloatsARow) {
  using T = TypeParam;
  const auto& [x, y, z, bias, sums, mean, inverse] =
      std::tie(this->x, this->y, this->z, this->bias, this->sums, this->mean, this->inverse);
  const Matrix<float>& partial = this->partial;
  const ExecutionSpace& space = this->space;
  const DropoutRows rows = dropout_rows(this->batch);
  const double n = this->elements;
  expect_work("mylos::layer_norm::bias_dropout_residual", {11.0 * n, bytes_of_arrays(x, y, z, y, mean, inverse)}, [&] {
    bias_dropout_residual_layer_norm<T>(space, this->dropout, rows, x, bias, y, this->parameters, this->saved, y);
  });
  expect_work("mylos::layer_norm::again", {4.0 * n, bytes_of_arrays(z, y, mean, inverse)},
              [&] { layer_norm_again<T>(space, this->parameters, this->saved, y); });
  expect_work("mylos::layer_norm::dropout", {9.0 * n, bytes_of_arrays(z, y, mean, inverse)},
              [&] { layer_norm_dropout<T>(space, this->dropout, rows, this->parameters, this->saved, y); });
  const auto backward = [&] {
    bias_dropout_residual_layer_norm_backward<T>(space, this->dropout, rows, y, this->parameters, this->saved, x, y,
                                                 sums, sums, sums, this->workspace);
  };
  expect_work("mylos::layer_norm::bias_dropout_residual_backward",
              {22.0 * n, bytes_of_arrays(y, z, x, y, mean, inverse, partial, partial, partial)}, backward);
  expect_work("mylos::column_sums::add", {9.0 * columns, bytes_of_arrays(partial, partial, partial)}, backward);
  expect_work("mylos::layer_norm::dropout_backward",
              {20.0 * n, bytes_of_arrays(y, z, x, mean, inverse, partial, partial)}, [&] {
                layer_norm_dropout_backward<T>(space, this->dropout, rows, y, this->parameters, this->saved, x, sums,
                                               sums, this->workspace);
              });
}

TYPED_TEST(WorkOf, RmsNormKeepsOneFloatARow) {
  using T = TypeParam;
  const auto& [x, y, z, inverse] = std::tie(this->x, this->y, this->z, this->inverse);
  const ExecutionSpace& space = this->space;
  const RmsNormParameters<T> parameters{this->bias, 1e-5f};
  const RmsNormSaved<T> saved{z, inverse};
  const double n = this->elements;
  expect_work("mylos::rms_norm::residual", {5.0 * n, bytes_of_arrays(x, z, z, y, inverse)},
              [&] { residual_rms_norm<T>(space, x, parameters, saved, y); });
  expect_work("mylos::rms_norm::forward", {4.0 * n, bytes_of_arrays(z, y, inverse)},
              [&] { residual_rms_norm<T>(space, {}, parameters, saved, y); });
  expect_work("mylos::rms_norm::again", {2.0 * n, bytes_of_arrays(z, y, inverse)},
              [&] { rms_norm_again<T>(space, parameters, saved, y); });
  expect_work("mylos::rms_norm::backward", {13.0 * n, bytes_of_arrays(z, y, x, x, inverse, this->partial)},
              [&] { rms_norm_backward<T>(space, parameters, saved, y, x, this->sums, this->workspace); });
}

TYPED_TEST(WorkOf, DecoderKernelsReadAndWriteTheirArrays) {
  using T = TypeParam;
  const ExecutionSpace& space = this->space;
  const Matrix<float> table("table", norm_rows, 4);
  const Matrix<T> qkv("qkv", norm_rows, 13), turned("turned", norm_rows, 12), gate_up("gate_up", norm_rows, 14);
  const double pairs = static_cast<double>(norm_rows * 2), n = this->elements;
  const auto positions = this->batch.integers("tokens");
  expect_work("mylos::rotary::table", {41.0 * pairs, bytes_of_arrays(positions, table)},
              [&] { rotary_table(space, positions, {.pairs = 2}, table); });
  expect_work("mylos::rotary::rotate",
              {3.0 * static_cast<double>(turned.size()), bytes_of_arrays(turned, turned, table)},
              [&] { rotate<T>(space, table, 3, Rotation::forward, qkv); });
  expect_work("mylos::swiglu::forward", {26.0 * n, bytes_of_arrays(gate_up, this->y)},
              [&] { swiglu<T>(space, gate_up, this->y); });
  expect_work("mylos::swiglu::backward", {33.0 * n, bytes_of_arrays(gate_up, gate_up, this->y, this->y)},
              [&] { swiglu_backward<T>(space, gate_up, this->y); });
  const Matrix<float> logits("logits", norm_rows, 5);
  expect_work("mylos::largest_column", {2.0 * static_cast<double>(logits.size()), bytes_of_arrays(logits, this->mean)},
              [&] { largest_column(space, logits, this->mean); });
}

/// 67 images of one pixel: partial sums have one row per image.
TYPED_TEST(WorkOf, BatchNormReadsItsArraysTwiceForGradients) {
  using T = TypeParam;
  const auto& [x, y, z, space] = std::tie(this->x, this->y, this->z, this->space);
  const double n = this->elements;
  const ImageGroups groups{this->batch.sample_starts(), this->batch.samples_of_rows(), 1};
  const BatchNormStatistics statistics{Matrix<float>("mean", 1, columns), Matrix<float>("inverse", 1, columns)};
  const BatchNormInput<T> input{x, statistics, this->bias, this->bias};
  const Vector<float> workspace("workspace", batch_norm_workspace(1, norm_rows, 1, columns));
  const Matrix<float> partial("partial", norm_rows, columns);
  const auto take = [&] { batch_norm_statistics<T>(space, groups, x, 1e-5f, statistics, {}, workspace); };
  expect_work("mylos::batch_norm::block_statistics", {5.0 * n, bytes_of_arrays(x, partial, partial)}, take);
  expect_work("mylos::batch_norm::group_statistics", {6.0 * n, bytes_of_arrays(partial, partial)}, take);
  expect_work("mylos::batch_norm::relu", {5.0 * n, bytes_of_arrays(x, y)},
              [&] { batch_norm_relu<T>(space, groups, input, y); });
  expect_work("mylos::batch_norm::residual_relu", {6.0 * n, bytes_of_arrays(x, y, z)},
              [&] { batch_norm_residual_relu<T>(space, groups, input, z, y); });
  expect_work("mylos::batch_norm::shortcut_relu", {10.0 * n, bytes_of_arrays(x, y, z)},
              [&] { batch_norm_shortcut_relu<T>(space, groups, input, input, y); });
  const BatchNormGradients gradients{this->sums, this->sums};
  const auto backward = [&](const ConstMatrix<T>& also) {
    return [&, also] { batch_norm_relu_backward<T>(space, groups, input, y, also, x, gradients, workspace); };
  };
  const auto of_sum = [&] { batch_norm_sum_relu_backward<T>(space, groups, input, z, y, z, x, gradients, workspace); };
  const char* const sums = "mylos::batch_norm::gradient_sums";
  expect_work(sums, {8.0 * n, bytes_of_arrays(x, y, partial, partial)}, backward({}));
  expect_work(sums, {9.0 * n, bytes_of_arrays(x, y, z, y, partial, partial)}, backward(z));
  expect_work(sums, {5.0 * n, bytes_of_arrays(x, y, z, z, y, partial, partial)}, of_sum);
  expect_work("mylos::batch_norm::input_gradient", {9.0 * n, bytes_of_arrays(x, y, x)}, backward({}));
  expect_work("mylos::batch_norm::input_gradient", {5.0 * n, bytes_of_arrays(x, y, x)}, of_sum);
}

TYPED_TEST(WorkOf, PoolingKeepsAByteOfEachWindow) {
  using T = TypeParam;
  const Matrix<T> x("x", 24, columns), y("y", 6, columns), mean("mean", 2, columns), pixels("pixels", 10, 3);
  const Matrix<std::uint8_t> taken("taken", 6, columns);
  const Vector<std::uint8_t> bytes("bytes", 30);
  const ExecutionSpace& space = this->space;
  const double n = 24.0 * columns, pooled = 6.0 * columns;
  expect_work("mylos::pooling::max", {8.0 * pooled, bytes_of_arrays(x, y, y)}, [&] {
    max_pool<T>(space, {3, 4, 2, 2, 1}, x, Matrix<T>("y", 12, columns), {});
  });
  expect_work("mylos::pooling::max_backward", {3.0 * n, bytes_of_arrays(x, y, y, taken)}, [&] {
    max_pool_backward<T>(space, {2, 6, 2, 2, 0}, taken, y, y, x);
  });
  expect_work("mylos::pooling::average", {n + 2.0 * columns, bytes_of_arrays(x, mean)},
              [&] { average_pool<T>(space, x, mean); });
  expect_work("mylos::pooling::average_backward", {n, bytes_of_arrays(x, mean)},
              [&] { average_pool_backward<T>(space, mean, x); });
  const PixelNormalization normalization{3, {}, {1.0f, 1.0f, 1.0f}};
  expect_work("mylos::pixels::normalize", {90.0, bytes_of_arrays(bytes, pixels)},
              [&] { normalize_pixels<T>(space, normalization, bytes, pixels); });
}

TYPED_TEST(WorkOf, EmbeddingsTouchTheRowsThatOccur) {
  using T = TypeParam;
  const Matrix<T> table("table", 9, columns), occurring("occurring", 2, columns);
  const Matrix<float> dtable("dtable", 9, columns), doccurring("doccurring", 2, columns);
  const auto lookup = [&](bool accumulate) {
    return reported("mylos::embedding::lookup", [&] {
      embedding_lookup<T>(this->space, this->batch.integers("tokens"), table, accumulate, this->y, 2);
    });
  };
  EXPECT_EQ(lookup(false), (Work{0.0, bytes_of_arrays(this->y, occurring)}));
  EXPECT_EQ(lookup(true), (Work{this->elements, bytes_of_arrays(this->y, this->y, occurring)}));
  expect_work("mylos::embedding::gradient", {this->elements, bytes_of_arrays(this->y, doccurring, doccurring)},
              [&] { embedding_gradient<T>(this->space, this->batch.groups("tokens"), this->y, dtable); });
}

TYPED_TEST(WorkOf, LossesTakeExponentialsTwiceForGradients) {
  using T = TypeParam;
  const Matrix<float> logits("logits", 6, 2);
  const Matrix<T> dlogits("dlogits", 6, 2);
  const Vector<std::int32_t> labels("labels", 6);
  const Vector<float> losses("losses", 6);
  const auto loss = [&](const Matrix<T>& gradient) {
    return reported("mylos::cross_entropy::classes",
                    [&] { cross_entropy<T>(this->space, logits, labels, 1.0f, losses, gradient); });
  };
  EXPECT_EQ(loss(dlogits), (Work{12.0 * (2.0 * 21.0 + 6.0), bytes_of_arrays(logits, dlogits)}));
  EXPECT_EQ(loss({}), (Work{12.0 * (21.0 + 3.0), bytes_of_arrays(logits)}));
  Vector<std::size_t> starts("starts", 3);
  Kokkos::deep_copy(starts, HostVector<std::size_t>(std::vector<std::size_t>{0, 2, 6}.data(), 3));
  const Vector<float> two = slice(losses, 0, 2);
  expect_work("mylos::cross_entropy::span", {12.0 * (2.0 * 21.0 + 6.0), bytes_of_arrays(logits, dlogits)}, [&] {
    span_cross_entropy<T>(this->space, starts, logits, slice(labels, 0, 2), slice(labels, 0, 2), 1.0f, two, dlogits);
  });
}

TEST(Work, UpdatesMoveMastersSlotsAndGradients) {
  const ExecutionSpace space;
  const Vector<float> g("g", 1000), w("w", 1000), m("m", 1000), v("v", 1000);
  const Vector<UpdateControl> control("control", 1);
  expect_work("mylos::optimizer::adamw", {15.0 * 1000, bytes_of_arrays(g, w, m, v, w, m, v)},
              [&] { adamw_update(space, {}, control, g, w, m, v); });
  const Vector<half> rounded("rounded", 1000);
  const RoundedValues to_half{rounded.data(), Precision::float16};
  expect_work("mylos::optimizer::adamw", {15.0 * 1000, bytes_of_arrays(g, w, m, v, w, m, v, rounded)},
              [&] { adamw_update(space, {}, control, g, w, m, v, to_half); });
  expect_work("mylos::optimizer::sgd", {7.0 * 1000, bytes_of_arrays(g, w, m, w, m, rounded)},
              [&] { sgd_update(space, {}, control, g, w, m, to_half); });
  expect_work("mylos::optimizer::adamw_revert", {7.0 * 1000, bytes_of_arrays(m, v, w, w)},
              [&] { adamw_revert(space, {}, m, v, w); });
  expect_work("mylos::optimizer::sgd", {7.0 * 1000, bytes_of_arrays(g, w, m, w, m)},
              [&] { sgd_update(space, {}, control, g, w, m); });
  const SgdSettings nesterov{.nesterov = true};
  EXPECT_EQ(reported("mylos::optimizer::sgd", [&] { sgd_update(space, nesterov, control, g, w, m); }).flops, 9000.0);
  expect_work("mylos::optimizer::sgd_revert", {2.0 * 1000, bytes_of_arrays(m, w, w)},
              [&] { sgd_revert(space, {}, m, w); });
  expect_work("mylos::optimizer::lion", {11.0 * 1000, bytes_of_arrays(g, w, m, w, m)},
              [&] { lion_update(space, {}, control, g, w, m); });
  const Vector<double> sums("sums", norm_blocks(0, 1000));
  expect_work("mylos::optimizer::squared_sums", {2.0 * 1000, bytes_of_arrays(g)},
              [&] { block_squared_sums(space, g, 0, sums); });
  expect_work("mylos::elementwise::add", {1000.0, bytes_of_arrays(g, w, w)}, [&] { add(space, g, w); });
}

/// Two sequences of 3 and 5 rows, with 4 heads of size 2.
constexpr std::size_t host_starts[] = {0, 3, 8};
const PackedSequences two_sequences{{}, {}, 5, host_starts};

/// Counts the pairs of rows that attention compares, one by one.
double pairs(bool causal) {
  double count = 0.0;
  for (std::size_t i = 0; i < 2; ++i) {
    for (std::size_t query = host_starts[i]; query < host_starts[i + 1]; ++query) {
      for (std::size_t key = host_starts[i]; key < host_starts[i + 1]; ++key) count += causal && key > query ? 0 : 1;
    }
  }
  return count;
}

TEST(Work, AttentionCountsItsProductsAndScores) {
  using namespace attention;
  const double statistics = 4.0 * 8 * 4;  // one float per head and row
  for (const bool causal : {false, true}) {
    const AttentionShape shape{.heads = 4, .key_value_heads = 4, .head_size = 2, .causal = causal};
    const double scores = 4.0 * pairs(causal);
    for (const std::size_t element : {4, 2}) {
      const double rows = 8.0 * 8.0 * static_cast<double>(element);  // an array (T, H)
      EXPECT_EQ(forward_work(shape, two_sequences, element),
                (Work{scores * (2 * 2 * 2 + 20.0), (3 + 1) * rows + statistics}));
      EXPECT_EQ(backward_work(shape, two_sequences, element),
                (Work{scores * (5 * 2 * 2 + 21.0), (3 + 1 + 3) * rows + 2 * statistics}));
      EXPECT_EQ(row_sums_work(shape, 8, element), (Work{2.0 * 8 * 8, 2 * rows + statistics}));
      EXPECT_EQ(query_pass_work(shape, two_sequences, element),
                (Work{scores * (3 * 2 * 2 + 21.0), (5 + 1) * rows + 2 * statistics}));
      EXPECT_EQ(key_pass_work(shape, two_sequences, element),
                (Work{scores * (4 * 2 * 2 + 21.0), (4 + 2) * rows + 2 * statistics}));
    }
  }
  // A query sees two keys, but the first of each sequence one.
  const AttentionShape windowed{.heads = 4, .key_value_heads = 4, .head_size = 2, .causal = true, .window = 2};
  EXPECT_EQ(forward_work(windowed, two_sequences, 4)->flops, 4.0 * (2 * 8 - 2) * (2 * 2 * 2 + 20.0));
  for (const std::size_t length : {1, 2, 3, 9}) {
    double pairs_of_length = 0.0;
    for (std::size_t query = 0; query < length; ++query) pairs_of_length += std::min<std::size_t>(query + 1, 2);
    EXPECT_DOUBLE_EQ(mean_visible_keys(windowed, static_cast<double>(length)),
                     pairs_of_length / static_cast<double>(length));
  }
  EXPECT_EQ(pairs(false), 34.0);
  EXPECT_EQ(pairs(true), 21.0);
}

TEST(Work, HeadsThatShareKeysReadThemOnce) {
  const AttentionShape shape{.heads = 4, .key_value_heads = 2, .head_size = 2};
  const double head = 8.0 * 2 * 4, statistics = 4.0 * 8 * 4;
  EXPECT_EQ(attention::forward_work(shape, two_sequences, 4)->bytes, (4 + 4 + 4) * head + statistics);
  EXPECT_EQ(attention::backward_work(shape, two_sequences, 4)->bytes, (8 + 4 + 8) * head + 2 * statistics);
  EXPECT_EQ(attention::query_pass_work(shape, two_sequences, 4)->bytes, (8 + 8 + 4) * head + 2 * statistics);
  EXPECT_EQ(attention::key_pass_work(shape, two_sequences, 4)->bytes, (8 + 4 + 4) * head + 2 * statistics);
}

TEST(Work, WithoutLengthsOrDistinctIndicesItIsNotReported) {
  const AttentionShape shape{.heads = 4, .key_value_heads = 4, .head_size = 2};
  EXPECT_FALSE(attention::forward_work(shape, {{}, {}, 5}, 4));
  const WorkRecorder recorder;
  EXPECT_STREQ(with_work("mylos::test", std::nullopt), "mylos::test");
  const Matrix<float> table("table", 2, 3), y("y", 4, 3);
  embedding_lookup<float>(ExecutionSpace(), Vector<std::int32_t>("indices", 4), table, false, y);
  Kokkos::fence("test::lookup");
  EXPECT_TRUE(recorder.work().empty());
}

TEST(Work, WhereNobodyListensALabelIsJustReturned) {
  { const WorkRecorder recorder; }
  EXPECT_STREQ(with_work("mylos::test", Work{1.0, 2.0}), "mylos::test");
}

TEST(Work, AProductsOwnIsThatOfItsThreeMatrices) {
  GemmLabel product{.m = 3, .n = 5, .k = 7, .input = Precision::bfloat16, .output = Precision::float32, .provider = ""};
  EXPECT_EQ(product_work(product).flops, 2.0 * 3 * 5 * 7);
  EXPECT_EQ(product_work(product).bytes, (21.0 + 35.0) * 2 + 15.0 * 4);
  product.accumulates = true;
  EXPECT_EQ(product_work(product).bytes, (21.0 + 35.0) * 2 + 15.0 * 8);
}

TEST(Work, ConversionsOfAProductAreThoseOfItsMatrices) {
  // The portable provider widens both 16-bit operands; the result is narrowed, or added to the old contents.
  const Gemm gemm(gemm_providers().front());
  const ExecutionSpace space;
  const Matrix<bfloat16> x("x", 3, 7), w("w", 5, 7), y("y", 3, 5);
  const auto multiply = [&](float beta) {
    return [&, beta] { gemm.operator()<bfloat16, bfloat16>(space, Transpose::no, x, Transpose::yes, w, beta, y); };
  };
  const auto converted = [&](float beta) {
    const WorkRecorder recorder;
    multiply(beta)();
    Kokkos::fence("test::converted");
    return recorder.work().at("mylos::activation::convert");
  };
  EXPECT_EQ(converted(0.0f), (Work{0.0, (21.0 + 35.0 + 15.0) * 6}));
  EXPECT_EQ(converted(1.0f), (Work{0.0, (21.0 + 35.0) * 6}));
  expect_work("mylos::gemm::accumulate", {2.0 * 15, 15.0 * (4 + 2 * 2)}, multiply(1.0f));
}

}  // namespace
}  // namespace mylos
