#include "nn/frozen_tensors.hpp"

#include "tests/support/temporary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace mylos::nn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A table of three layers, with a norm of the body in the head's unit.
ParameterTable small_table() {
  ParameterTable::Builder builder;
  builder.unit("embeddings").tensor("words.weight", {9, 4}, {}).tensor("positions.weight", {3, 4}, {});
  for (const std::string layer : {"layer.0", "layer.1", "layer.10"}) {
    builder.unit(layer).tensor(layer + ".weight", {4, 4}, {}).tensor(layer + ".bias", {4}, {}, {.decay = false});
  }
  builder.unit("head").head(true).tensor("classifier.weight", {2, 4}, {});
  builder.head(false).tensor("norm.weight", {4}, {}, {.decay = false});
  return builder.build();
}

std::vector<std::string> frozen_by(const std::vector<std::string>& patterns) {
  ParameterTable table = small_table();
  freeze_tensors(table, patterns);
  std::vector<std::string> names;
  for (const ParameterTensor& tensor : table.tensors()) {
    if (!tensor.group.trainable) names.push_back(tensor.name);
  }
  return names;
}

std::vector<std::string> frozen_units(const std::vector<std::string>& patterns) {
  ParameterTable table = small_table();
  freeze_tensors(table, patterns);
  std::vector<std::string> names;
  for (const ParameterUnit& unit : table.units()) {
    if (!unit.trained) names.push_back(unit.name);
  }
  return names;
}

TEST(FrozenTensors, AreSelectedByUnitsAndGlobs) {
  EXPECT_THAT(frozen_by({}), ElementsAre());
  EXPECT_THAT(frozen_by({"embeddings"}), ElementsAre("words.weight", "positions.weight"));
  EXPECT_THAT(frozen_units({"layers.0-1"}), ElementsAre("layer.0", "layer.1"));
  EXPECT_THAT(frozen_units({"layer.1"}), ElementsAre("layer.1"));
  EXPECT_THAT(frozen_units({"layers"}), ElementsAre("layer.0", "layer.1", "layer.10"));
  EXPECT_THAT(frozen_units({"layers.2-10", "embeddings"}), ElementsAre("embeddings", "layer.10"));
  EXPECT_THAT(frozen_by({"*.bias"}), ElementsAre("layer.0.bias", "layer.1.bias", "layer.10.bias"));
  EXPECT_THAT(frozen_by({"words.weight"}), ElementsAre("words.weight"));
  EXPECT_THAT(frozen_units({"*.bias"}), ElementsAre("layer.0.frozen", "layer.1.frozen", "layer.10.frozen"));
}

TEST(FrozenTensors, BodyAndHeadAreTheTwoPartsOfANetwork) {
  const std::vector<std::string> body = frozen_by({"body"});
  EXPECT_EQ(body.size(), small_table().tensors().size() - 1);
  EXPECT_THAT(body, ::testing::Contains("norm.weight"));
  EXPECT_THAT(frozen_by({"head"}), ElementsAre("classifier.weight"));
  EXPECT_THAT(frozen_units({"body"}), ElementsAre("embeddings", "layer.0", "layer.1", "layer.10", "head.frozen"));
}

TEST(FrozenTensors, LeaveTheOrderAsItIs) {
  ParameterTable table = small_table();
  freeze_tensors(table, std::vector<std::string>{"*.weight"});
  const ParameterTable whole = small_table();
  for (std::size_t i = 0; i < whole.tensors().size(); ++i) {
    EXPECT_EQ(table.tensor(i).name, whole.tensor(i).name);
  }
  EXPECT_EQ(table.first_trained_unit(), 1u);
  EXPECT_EQ(table.trained_units(), 3u);
  EXPECT_EQ(table.trained_size(), 12u) << "three biases";
  EXPECT_FALSE(table.tensor(0).group.decay);
}

TEST(FrozenTensors, PatternsThatCannotBeMeantAreErrors) {
  const auto message = [](const std::vector<std::string>& patterns) {
    return tests::error_of([&] { frozen_by(patterns); });
  };
  EXPECT_THAT(message({"embeddings", "layers.11-12"}), HasSubstr("layers.11-12"));
  EXPECT_THAT(message({"layers.11-12"}), HasSubstr("its units are embeddings to head"));
  EXPECT_THAT(message({"layers.1-0"}), HasSubstr("selects no tensor"));
  EXPECT_THAT(message({"body", "head"}), HasSubstr("no tensor of the model is left to train"));
  EXPECT_THAT(message({"*"}), HasSubstr("no tensor of the model is left to train"));
}

}  // namespace
}  // namespace mylos::nn
