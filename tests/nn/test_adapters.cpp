#include "nn/adapters.hpp"

#include "nn/layers/linear.hpp"
#include "tests/support/temporary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace mylos::nn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Two layers with a stack and a single linear layer each, and a head with linear layers of its own.
ParameterTable adaptable_table() {
  ParameterTable::Builder builder;
  builder.unit("embeddings").tensor("words.weight", {9, 6}, {});
  for (const std::string layer : {"layer.0.", "layer.1."}) {
    builder.unit(layer + "unit").stack(true);
    add_linear_tensors(builder, layer + "query", 6, 8, {});
    add_linear_tensors(builder, layer + "key", 6, 4, {});
    add_linear_tensors(builder, layer + "value", 6, 4, {});
    builder.stack(false);
    add_linear_tensors(builder, layer + "out", 8, 6, {}, std::nullopt);
    builder.tensor(layer + "norm.weight", {6}, {}, {.decay = false});
  }
  builder.unit("head").head(true);
  add_linear_tensors(builder, "classifier.dense", 6, 6, {});
  add_linear_tensors(builder, "classifier.out", 6, 2, {});
  builder.head(false).tensor("norm.weight", {6}, {}, {.decay = false});
  return builder.build();
}

const Adapters query_and_value{
    .layers = {{"layer.1.value", 3, 0.5f}, {"layer.1.query", 2, 2.0f}, {"layer.1.out", 6, 1.0f}}, .dropout = 0.25f};

ParameterTable adapted_table(const Adapters& adapters) {
  ParameterTable table = adaptable_table();
  add_adapters(table, adapters);
  return table;
}

std::vector<std::string> trained_names(const ParameterTable& table) {
  std::vector<std::string> names;
  for (const ParameterTensor& tensor : table.tensors()) {
    if (tensor.group.trainable) names.push_back(tensor.name);
  }
  return names;
}

const std::vector<std::string> adapters_in_order = {"layer.1.query.lora_A.weight", "layer.1.value.lora_A.weight",
                                                    "layer.1.out.lora_A.weight",   "layer.1.query.lora_B.weight",
                                                    "layer.1.value.lora_B.weight", "layer.1.out.lora_B.weight"};

TEST(Adapters, AreForLinearLayersOfTheBody) {
  EXPECT_THAT(linear_modules(adaptable_table()),
              ElementsAre("layer.0.query", "layer.0.key", "layer.0.value", "layer.0.out", "layer.1.query",
                          "layer.1.key", "layer.1.value", "layer.1.out"));
  EXPECT_EQ(linear_modules(adapted_table(query_and_value)), linear_modules(adaptable_table()));
}

/// The order of the table's layers, not that in which adapters are given: first all A, then all B.
TEST(Adapters, FollowTheTensorsOfTheModel) {
  const ParameterTable whole = adaptable_table(), table = adapted_table(query_and_value);
  const std::size_t own = whole.tensors().size();
  ASSERT_EQ(table.tensors().size(), own + adapters_in_order.size());
  for (std::size_t i = 0; i < own; ++i) EXPECT_EQ(table.tensor(i).name, whole.tensor(i).name);
  const std::vector<std::vector<std::size_t>> shapes = {{2, 6}, {3, 6}, {6, 8}, {8, 2}, {4, 3}, {6, 6}};
  std::size_t offset = 0;
  for (std::size_t i = 0; i < adapters_in_order.size(); ++i) {
    const ParameterTensor& tensor = table.tensor(own + i);
    EXPECT_EQ(tensor.name, adapters_in_order[i]);
    EXPECT_EQ(tensor.shape, shapes[i]) << tensor.name;
    EXPECT_EQ(tensor.size, shapes[i][0] * shapes[i][1]) << tensor.name;
    EXPECT_EQ(tensor.unit, 2u) << tensor.name;
    EXPECT_EQ(tensor.offset, offset) << tensor.name << ": the matrices A of a stack are one after the other";
    EXPECT_TRUE(tensor.group.decay && !tensor.is_linear && !tensor.in_head) << tensor.name;
    offset += tensor.size;
  }
  const auto rule = [&](std::size_t i) { return table.tensor(own + i).adapter.value(); };
  EXPECT_EQ(rule(0).scale, 2.0f);
  EXPECT_EQ(rule(1).scale, 0.5f);
  EXPECT_EQ(rule(5).scale, 1.0f);
  EXPECT_EQ(rule(3).dropout, 0.25f);
  const auto stack = [&](std::size_t i) { return table.tensor(own + i).stack; };
  EXPECT_EQ(stack(0), stack(1));
  EXPECT_EQ(stack(2), 0u) << "of no stack";
  EXPECT_TRUE(std::ranges::none_of(whole.tensors(), [&](const auto& tensor) { return tensor.stack == stack(0); }));
}

TEST(Adapters, FreezeAllElse) {
  const ParameterTable table = adapted_table(query_and_value);
  EXPECT_EQ(trained_names(table), adapters_in_order);
  EXPECT_TRUE(table.is_adapted());
  EXPECT_FALSE(adaptable_table().is_adapted());
  EXPECT_EQ(table.first_trained_unit(), 2u);
  EXPECT_EQ(table.network_units(), adaptable_table().network_units());
  EXPECT_EQ(table.frozen_size(), adaptable_table().size());
  EXPECT_EQ(table.trained_size(), 5 * 6 + 6 * 8 + 8 * 2 + 4 * 3 + 6 * 6);
  for (const ParameterUnit& unit : table.units()) {
    EXPECT_EQ(unit.trained, unit.name == "layer.1.unit") << unit.name;
    EXPECT_EQ(unit.has_master, unit.trained) << unit.name;
  }
}

TEST(Adapters, StartUniformAndAtZero) {
  const ParameterTable table = adapted_table({.layers = {{"layer.0.out", 5, 1.0f}}});
  std::vector<float> a(5 * 8), b(6 * 5, 1.0f);
  initialize(table.tensor(table.find("layer.0.out.lora_A.weight")), 3, a);
  initialize(table.tensor(table.find("layer.0.out.lora_B.weight")), 3, b);
  const float bound = 1.0f / std::sqrt(8.0f);
  EXPECT_TRUE(std::ranges::all_of(a, [&](float value) { return std::fabs(value) <= bound; }));
  EXPECT_LT(std::ranges::min(a), -0.8f * bound);
  EXPECT_GT(std::ranges::max(a), 0.8f * bound);
  EXPECT_TRUE(std::ranges::all_of(b, [](float value) { return value == 0.0f; }));
}

/// Names end at a dot: "layer.1" is not "layer.10".
TEST(Adapters, LeaveModulesThatAreTrainedWhole) {
  const auto trained_beside = [](const std::vector<std::string>& modules) {
    return trained_names(adapted_table({.layers = {{"layer.1.key", 1, 1.0f}}, .trained = modules}));
  };
  const std::string a = "layer.1.key.lora_A.weight", b = "layer.1.key.lora_B.weight";
  EXPECT_THAT(trained_beside({"classifier"}), ElementsAre("classifier.dense.weight", "classifier.out.weight",
                                                          "classifier.dense.bias", "classifier.out.bias", a, b));
  EXPECT_THAT(trained_beside({"classifier.out", "words"}),
              ElementsAre("words.weight", "classifier.out.weight", "classifier.out.bias", a, b));
  EXPECT_THAT(trained_beside({"layer.0.query"}), ElementsAre("layer.0.query.weight", "layer.0.query.bias", a, b));
  EXPECT_THAT(trained_beside({"class", "layer.0.quer"}), ElementsAre(a, b));
}

/// Key and value are read with query, so they stay beside it, with master weights and without updates.
TEST(Adapters, WholeLayersOfAStackKeepTheOthersBesideThem) {
  const ParameterTable table = adapted_table({.layers = {{"layer.1.value", 1, 1.0f}}, .trained = {"layer.1.query"}});
  for (const char* name : {"layer.1.query.weight", "layer.1.key.weight", "layer.1.value.weight"}) {
    EXPECT_EQ(table.tensor(table.find(name)).unit, 2u) << name;
  }
  EXPECT_EQ(table.tensor(table.find("layer.1.out.weight")).unit, table.units()[2].rest);
  EXPECT_FALSE(table.tensor(table.find("layer.1.key.weight")).group.trainable);
}

TEST(Adapters, RanksAreFromOneToTheNarrowerSide) {
  for (const std::size_t rank : {1u, 4u}) EXPECT_NO_THROW(adapted_table({.layers = {{"layer.0.key", rank, 1.0f}}}));
  const auto message = [](std::size_t rank) {
    return tests::error_of([&] { adapted_table({.layers = {{"layer.0.key", rank, 1.0f}}}); });
  };
  EXPECT_EQ(message(0), "the adapter of layer.0.key has rank 0: expected 1 to 4, the width of the layer");
  EXPECT_EQ(message(5), "the adapter of layer.0.key has rank 5: expected 1 to 4, the width of the layer");
}

TEST(Adapters, OtherModulesAreErrors) {
  for (const char* module : {"layer.0.norm", "layer.2.query", "classifier.out", "words"}) {
    EXPECT_THAT(tests::error_of([&] {
                  adapted_table({.layers = {{module, 1, 1.0f}}});
                }),
                HasSubstr("one is for a module that is no linear layer of the model"))
        << module;
  }
}

}  // namespace
}  // namespace mylos::nn
