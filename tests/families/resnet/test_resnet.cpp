// Compares the whole model, at odd sizes, with the double-precision reference: basic and bottleneck blocks, both stems,
// and every position of strides.

#include "families/resnet/resnet_model.hpp"
#include "nn/head.hpp"

#include "tests/families/resnet/resnet_twin.hpp"
#include "tests/nn/model_setting.hpp"
#include "tests/nn/profiled_pass.hpp"
#include "tests/support/temporary.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

namespace mylos::families {
namespace {

using namespace tests;
using ::testing::HasSubstr;

ResnetShape small_resnet(std::size_t height, std::size_t width) {
  ResnetShape shape;
  shape.height = height;
  shape.width = width;
  shape.bottleneck = false;
  shape.mean = {0.5f, 0.4f, 0.3f};
  shape.deviation = {0.25f, 0.3f, 0.2f};
  return shape;
}

ResnetShape bottleneck_resnet() {
  ResnetShape shape = small_resnet(23, 17);
  shape.bottleneck = true;
  shape.embedding = 6;
  shape.hidden = {8, 16, 20};
  shape.depths = {2, 3, 1};
  return shape;
}

/// Strides as in transformers' other bottlenecks, also in the first stage.
ResnetShape early_resnet() {
  ResnetShape shape = bottleneck_resnet();
  shape.height = 39;
  shape.width = 37;
  shape.embedding = shape.hidden[0];
  shape.depths = {2, 2, 1};
  shape.downsample_in_bottleneck = shape.downsample_in_first_stage = true;
  return shape;
}

/// The first block has an identity shortcut, and the second stage none, although the number of channels is unchanged.
ResnetShape basic_resnet() {
  ResnetShape shape = small_resnet(20, 27);
  shape.embedding = 6;
  shape.hidden = {6, 6, 9};
  shape.depths = {2, 1, 2};
  return shape;
}

/// Grey images, no pooling, and more blocks in the last stage than in the others together.
ResnetShape cifar_resnet() {
  ResnetShape shape = small_resnet(9, 7);
  shape.stem = ImageStem::cifar;
  shape.channels = 1;
  shape.mean = {0.25f};
  shape.deviation = {0.5f};
  shape.embedding = 4;
  shape.hidden = {4, 7};
  shape.depths = {1, 3};
  return shape;
}

struct NamedResnet {
  std::string name;
  ResnetShape shape;
};
std::vector<NamedResnet> resnets() {
  return {{"bottleneck", bottleneck_resnet()},
          {"early", early_resnet()},
          {"basic", basic_resnet()},
          {"cifar", cifar_resnet()}};
}

/// A model with parameters away from their initial values, and running statistics that differ from those of any group.
struct ResnetSetting : ModelSetting<nn::Model, ResnetTwinBatch> {
  explicit ResnetSetting(const ResnetShape& of, const std::string& provider = gemm_providers().back(),
                         nn::Recompute recomputed = nn::Recompute::none, Precision precision = Precision::float32)
      : ModelSetting(make_resnet(of, twin_head, precision), ResnetTwinBatch(of, {3, 2}), provider, recomputed,
                     precision),
        shape(of) {
    const auto rows = model->table().state_tensors();
    for (std::size_t row = 0; row < rows.size(); ++row) {
      Values values = random_values(rows[row].size, 500 + row, 0.3);
      for (double& value : values) value += rows[row].name.ends_with("running_var") ? 1.0 : 0.0;
      Kokkos::deep_copy(engine->store.state(row), device_vector<float>(values));
    }
  }

  ResnetShape shape;
};

TEST(ResnetModel, FrozenTensorsHaveNoGradients) {
  for (const auto& [resnet, shape] : resnets()) {
    SCOPED_TRACE(resnet);
    for (const nn::Recompute recompute : {nn::Recompute::none, nn::Recompute::layer}) {
      const auto make = [&] { return ResnetSetting(shape, gemm_providers().back(), recompute); };
      for (const std::vector<std::string>& patterns : {std::vector<std::string>{"stem"},
                                                       {"body"},
                                                       {"stages.0", "head"},
                                                       {"*normalization*"},
                                                       {"stem", "stages.0"},
                                                       {"stem", "stages.0.layers.0"},
                                                       {"stem", "stages.0-1", "*normalization*"}}) {
        expect_frozen(make(), make(), patterns);
      }
    }
  }
}

/// Gradients in float differ by up to 4.3e-5, depending on the CPU. test_resnet_reference.cpp compares bottlenecks.
TEST(ResnetModel, LossesAndEveryGradientMatchTheTwin) {
  for (const ResnetShape& shape : {basic_resnet(), cifar_resnet()}) {
    ResnetSetting s(shape);
    ResnetTwin twin(shape, *s.engine, s.data);
    expect_losses_and_gradients(s, twin, 1e-4);
    for (const std::string& provider : exact_gemm_providers()) {
      ResnetSetting other(shape, provider);
      expect_near(other.train(2, 0.5f), twin.losses(), 1e-5, provider);
      for (std::size_t row = 0; row < s.parameters(); ++row) {
        expect_near(other.engine->gradient(row), s.engine->gradient(row), 1e-4, provider + " " + s.name(row));
      }
    }
  }
}

TEST(ResnetModel, PredictionUsesRunningStatistics) {
  for (const auto& [resnet, shape] : resnets()) {
    SCOPED_TRACE(resnet);
    ResnetSetting s(shape);
    const ResnetTwin twin(shape, *s.engine, s.data);
    const Vector<float> losses("test::losses", 2);
    const Values logits = s.predict(2, losses);
    expect_near(logits, twin.running_logits(), 1e-5, "logits");
    expect_near(host_values(losses), twin.losses_of(twin.running_logits()), 1e-5, "losses");
    EXPECT_EQ(s.predict(2), logits);
    // One group alone, whose images are normalised as before.
    Batch batch;
    s.data.fill(1, 2, batch);
    const Values alone = host_values(s.model->predict(s.engine->pass(), batch, {}));
    const auto first = logits.begin() + static_cast<std::ptrdiff_t>(3 * twin_head.labels);
    expect_near(alone, Values(first, first + static_cast<std::ptrdiff_t>(2 * twin_head.labels)), 4e-6, "alone");
  }
}

TEST(ResnetModel, GroupsDoNotDependOnTheMicroBatch) {
  for (const auto& [resnet, shape] : resnets()) {
    SCOPED_TRACE(resnet);
    ResnetSetting whole(shape), split(shape);
    expect_near(split.train(1, 0.25f), whole.train(2, 0.25f), 1e-6, "losses");
    expect_near(split.observed, whole.observed, 4e-6, "observed");
    for (std::size_t row = 0; row < whole.model->table().tensors().size(); ++row) {
      expect_near(split.engine->gradient(row), whole.engine->gradient(row), 1e-5, whole.name(row));
    }
  }
}

TEST(ResnetModel, RecomputationChangesNoBitAndTakesLessMemory) {
  for (const auto& [resnet, shape] : resnets()) {
    for (const Precision precision : {Precision::float32, Precision::bfloat16}) {
      SCOPED_TRACE(resnet);
      ResnetSetting kept(shape, gemm_providers().back(), nn::Recompute::none, precision);
      ResnetSetting again(shape, gemm_providers().back(), nn::Recompute::layer, precision);
      EXPECT_EQ(again.train(2, 0.5f), kept.train(2, 0.5f));
      EXPECT_EQ(again.observed, kept.observed);
      EXPECT_EQ(again.gradients(), kept.gradients());
    }
  }
  EXPECT_TRUE(make_resnet(cifar_resnet(), twin_head, Precision::float32)->can_recompute(nn::Recompute::layer));
  EXPECT_FALSE(make_resnet(cifar_resnet(), twin_head, Precision::float32)->can_recompute(nn::Recompute::attention));
}

/// For ResNet-50, in floats per image: little memory is needed beyond the layers' results.
TEST(ResnetModel, MemoryIsThatOfResultsAndLittleMore) {
  const auto model = make_resnet({}, {}, Precision::float32);
  const auto planned = [&](ParameterStore::Purpose purpose, nn::Recompute recompute) {
    Arena arena;
    model->plan(arena, {.samples = 1, .rows = 32, .longest = 32}, purpose, recompute);
    return static_cast<double>(arena.peak()) / (32 * sizeof(float));
  };
  // Convolutions produce 11.11 million values, blocks 5.52 million, and the stem and the pixels 0.35 million.
  EXPECT_NEAR(planned(ParameterStore::Purpose::training, nn::Recompute::none), 17.3e6, 0.4e6);
  EXPECT_LT(planned(ParameterStore::Purpose::training, nn::Recompute::layer), 11e6);
  EXPECT_LT(planned(ParameterStore::Purpose::inference, nn::Recompute::none), 3.6e6);
}

TEST(ResnetModel, BytesAreNormalizedByTheModel) {
  for (const ResnetShape& shape : {bottleneck_resnet(), cifar_resnet()}) {
    ResnetSetting s(shape);
    Batch batch;
    s.data.fill(0, 2, batch);
    std::vector<std::uint8_t> bytes;
    std::vector<float> values;
    for (std::size_t i = 0; i < s.data.pixels.size(); ++i) {
      bytes.push_back(static_cast<std::uint8_t>(i * 37 % 256));
      const std::size_t c = i % shape.channels;
      values.push_back((static_cast<float>(bytes.back()) / 255.0f - shape.mean[c]) / shape.deviation[c]);
    }
    batch.set(nn::names::pixel_values, std::span<const float>(values));
    const Values expected = host_values(s.model->predict(s.engine->pass(), batch, {}));
    batch.reset(s.data.groups, std::vector<std::uint32_t>{0, 1});
    batch.set(nn::names::pixels, std::span<const std::uint8_t>(bytes));
    expect_near(host_values(s.model->predict(s.engine->pass(), batch, {})), expected, 1e-6, "logits");
  }
}

/// Images are large enough that no group has few values in a channel. Rounding moves values across the zero of ReLUs,
/// which rotates the gradient by an angle whose square is of the order of the rounding errors.
TEST(ResnetModel, SixteenBitsGoInTheSameDirection) {
  for (auto& [resnet, shape] : resnets()) {
    shape.height *= 2;
    shape.width *= 2;
    for (const Precision precision : {Precision::bfloat16, Precision::float16}) {
      ResnetSetting exact(shape), rounded(shape, gemm_providers().back(), nn::Recompute::none, precision);
      const bool is_half = precision == Precision::float16;
      expect_near(rounded.train(2, 1.0f), exact.train(2, 1.0f), is_half ? 0.02 : 0.1, resnet + " losses");
      Values all, all_exact;
      for (const auto& [from, to] : {std::pair(&rounded, &all), {&exact, &all_exact}}) {
        for (const Values& row : from->gradients()) to->insert(to->end(), row.begin(), row.end());
      }
      expect_same_gradient(all, all_exact, is_half ? 0.04 : 0.25, is_half ? 0.1 : 0.2, resnet);
    }
  }
}

TEST(ResnetModel, RefusesHeadsThatNoLossFits) {
  const auto message = [](const ResnetHead& head) {
    return error_of([&] { make_resnet(cifar_resnet(), head, Precision::float32); });
  };
  EXPECT_THAT(message({.labels = 0}), HasSubstr("ResNet: 0 labels"));
  EXPECT_THAT(message({.label_smoothing = 1.0f}), HasSubstr("ResNet: label smoothing 1 is not in [0, 1)"));
}

TEST(ResnetModel, TellsTheScheduleOfEachUnit) {
  for (const nn::Recompute recompute : {nn::Recompute::none, nn::Recompute::layer}) {
    ResnetSetting s(bottleneck_resnet(), gemm_providers().back(), recompute);
    const std::size_t units = 8;
    ASSERT_EQ(s.model->table().units().size(), units);
    EXPECT_EQ(s.model->table().units()[0].name, "stem");
    EXPECT_EQ(s.model->table().units()[4].name, "stages.1.layers.1");
    EXPECT_EQ(s.model->table().units()[7].name, "head");
    expect_schedule(s, units);
  }
}

TEST(ResnetModel, HasTheRowsThatFilesName) {
  const auto model = make_resnet(bottleneck_resnet(), twin_head, Precision::float32);
  const ParameterTable& table = model->table();
  const ParameterTensor& stem = table.tensor(table.find("resnet.embedder.embedder.convolution.weight"));
  EXPECT_EQ(stem.shape, (std::vector<std::size_t>{6, 7, 7, 3}));
  EXPECT_TRUE(stem.group.decay);
  EXPECT_FLOAT_EQ(stem.initializer.scale, std::sqrt(2.0f / (6 * 49)));
  const ParameterTensor& shortcut =
      table.tensor(table.find("resnet.encoder.stages.1.layers.0.shortcut.convolution.weight"));
  EXPECT_EQ(shortcut.shape, (std::vector<std::size_t>{16, 1, 1, 8}));
  const ParameterTensor& norm = table.tensor(table.find("resnet.encoder.stages.2.layers.0.layer.1.normalization.bias"));
  EXPECT_FALSE(norm.group.decay);
  const ParameterTensor& head = table.tensor(table.find("classifier.1.weight"));
  EXPECT_EQ(head.shape, (std::vector<std::size_t>{5, 20}));
  EXPECT_EQ(head.initializer.kind, Initializer::Kind::uniform);
  EXPECT_FALSE(table.tensor(table.find("classifier.1.bias")).group.decay);
  const auto state = [&](const char* name) {
    return table.state_tensors()[table.find_state(std::string("resnet.embedder.embedder.normalization.") + name)];
  };
  EXPECT_EQ(state("running_var").initializer.kind, Initializer::Kind::ones);
  EXPECT_EQ(state("running_mean").rule.momentum, 0.1f);
  EXPECT_EQ(state("num_batches_tracked").rule.kind, StateRule::Kind::count);
}

TEST(ResnetModel, RefusesPixelsOfOtherSizes) {
  ResnetSetting s(cifar_resnet());
  Batch batch;
  s.data.fill(0, 1, batch);
  batch.set(nn::names::pixel_values, std::vector<float>(3 * 9 * 7 + 1));
  EXPECT_THAT(error_of([&] { s.model->predict(s.engine->pass(), batch, {}); }),
              HasSubstr("ResNet: pixel_values has 190 values for 3 images of 9 x 7 x 1"));
  batch.reset(std::vector<std::size_t>{3}, std::vector<std::uint32_t>{0});
  batch.set(nn::names::pixels, std::vector<std::uint8_t>(63));
  EXPECT_THAT(error_of([&] { s.model->predict(s.engine->pass(), batch, {}); }),
              HasSubstr("ResNet: pixels has 63 values for 3 images of 9 x 7 x 1"));
}

TEST(ResnetWork, OperationsAreThoseOfTheProductsOfAPass) {
  for (const auto& [resnet, shape] : resnets()) {
    const auto model = make_resnet(shape, twin_head, Precision::float32);
    for (const nn::Recompute recompute : {nn::Recompute::none, nn::Recompute::layer}) {
      const ProfiledPass profiled = profile_pass(*model, ResnetTwinBatch(shape, {3, 1, 2}), Precision::float32,
                                                 recompute, gemm_providers().back());
      EXPECT_DOUBLE_EQ(model->training_flops(profiled.shape, recompute), profiled.product_flops) << resnet;
    }
  }
}

TEST(ResnetWork, ListsTheProductsOfAPass) {
  for (const auto& [resnet, shape] : resnets()) {
    for (const Precision precision : {Precision::float32, Precision::bfloat16}) {
      const auto model = make_resnet(shape, twin_head, precision);
      const ProfiledPass profiled = profile_pass(*model, ResnetTwinBatch(shape, {3, 1, 2}), precision,
                                                 nn::Recompute::none, gemm_providers().back());
      // For convolutions and for other products.
      std::map<std::optional<Convolution>, ProductCounts> computed, listed;
      for (const GemmLabel& one : profiled.products) count_product(computed[one.convolution], one, 1);
      std::set<std::string> names;
      std::size_t count = 0;
      for (const GemmProduct& one : model->products(profiled.shape, ParameterStore::Purpose::training)) {
        count_product(listed[one.convolution], one, one.count);
        names.insert(one.name);
        ++count;
      }
      EXPECT_EQ(listed, computed) << resnet;
      EXPECT_EQ(names.size(), count) << resnet;
      EXPECT_TRUE(names.contains("stem/weight-gradient") && names.contains("stages.0.layers.0.layer.0/forward") &&
                  names.contains("stages.1.layers.0.shortcut/input-gradient") && names.contains("head/forward"))
          << resnet;
      EXPECT_FALSE(names.contains("stem/input-gradient"));
      for (const GemmProduct& one : model->products(profiled.shape, ParameterStore::Purpose::inference)) {
        EXPECT_TRUE(one.name.ends_with("/forward"));
      }
    }
  }
}

}  // namespace
}  // namespace mylos::families
