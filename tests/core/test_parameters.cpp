#include "core/parameters.hpp"

#include "tests/support/temporary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace mylos {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using tests::error_of;

constexpr Initializer zeros{.kind = Initializer::Kind::zeros};
constexpr Initializer ones{.kind = Initializer::Kind::ones};
constexpr Initializer normal_{.kind = Initializer::Kind::normal, .scale = 0.02f};
constexpr Initializer uniform_{.kind = Initializer::Kind::uniform, .scale = 0.3f};
constexpr ParameterGroup no_decay{.decay = false};
constexpr ParameterGroup frozen{.trainable = false};

/// Returns two units. The second interleaves groups, as a layer with weights and biases does.
ParameterTable two_units() {
  ParameterTable::Builder builder;
  builder.unit("embeddings").tensor("table", {10, 4}, normal_);
  builder.unit("layer")
      .borrow("embeddings")
      .tensor("q.weight", {3, 4}, normal_)
      .tensor("q.bias", {3}, zeros, no_decay)
      .tensor("fixed", {2}, ones, frozen)
      .tensor("k.weight", {3, 4}, normal_)
      .tensor("k.bias", {3}, zeros, no_decay)
      .state("running", {5}, ones)
      .state("count", {1}, zeros);
  return builder.build();
}

TEST(ParameterTable, LaysRowsOutByGroupInTheOrderTheyCame) {
  const ParameterTable table = two_units();
  const auto offset = [&](std::string_view name) { return table.tensor(table.find(name)).offset; };
  EXPECT_EQ(offset("table"), 0u);
  EXPECT_EQ(offset("q.weight"), 0u);
  EXPECT_EQ(offset("k.weight"), 12u);
  EXPECT_EQ(offset("q.bias"), 24u);
  EXPECT_EQ(offset("k.bias"), 27u);
  EXPECT_EQ(offset("fixed"), 0u) << "of the frozen tensors";
  EXPECT_EQ(table.units()[0].size, 40u);
  EXPECT_EQ(table.units()[1].size, 30u) << "without what is frozen";
  EXPECT_EQ(table.size(), 72u);
  EXPECT_EQ(table.tensors().size(), 6u);
}

TEST(ParameterTable, RowsKnowTheirShapeAndUnit) {
  const ParameterTable table = two_units();
  const ParameterTensor& tensor = table.tensor(table.find("k.weight"));
  EXPECT_EQ(tensor.name, "k.weight");
  EXPECT_THAT(tensor.shape, ElementsAre(3, 4));
  EXPECT_EQ(tensor.size, 12u);
  EXPECT_EQ(tensor.unit, 1u);
  EXPECT_THAT(table.units()[1].borrowed, ElementsAre(0));
  EXPECT_EQ(table.units()[0].name, "embeddings");
}

TEST(ParameterTable, SegmentsCoverAUnitOnce) {
  const std::vector<ParameterSegment> segments = two_units().segments(1);
  ASSERT_EQ(segments.size(), 2u);
  EXPECT_EQ(segments[0].begin, 0u);
  EXPECT_EQ(segments[0].end, 24u);
  EXPECT_TRUE(segments[0].group.decay);
  EXPECT_EQ(segments[1].begin, 24u);
  EXPECT_EQ(segments[1].end, 30u);
  EXPECT_FALSE(segments[1].group.decay);
}

std::vector<std::string> tensors_of(const ParameterTable& table, std::size_t unit) {
  std::vector<std::string> names;
  std::size_t size = 0;
  for (const ParameterTensor& tensor : table.tensors()) {
    if (tensor.unit != unit) continue;
    EXPECT_EQ(tensor.offset, std::exchange(size, size + tensor.size)) << tensor.name;
    names.push_back(tensor.name);
  }
  EXPECT_EQ(size, table.units()[unit].size);
  return names;
}

TEST(ParameterTable, FrozenTensorsAreTheRestOfTheirUnit) {
  ParameterTable table = two_units();
  EXPECT_EQ(table.network_units(), 2u);
  ASSERT_EQ(table.units().size(), 3u);
  EXPECT_EQ(table.units()[0].rest, std::nullopt);
  EXPECT_EQ(table.units()[1].rest, std::optional<std::size_t>(2));
  EXPECT_FALSE(table.units()[2].trained);
  EXPECT_EQ(table.units()[2].name, "layer.frozen");
  EXPECT_THAT(tensors_of(table, 2), ElementsAre("fixed"));
  EXPECT_THAT(table.parts(0), ElementsAre(0));
  EXPECT_THAT(table.read_by(1), ElementsAre(0, 1, 2)) << "it borrows unit 0";

  const std::size_t row = table.find("k.weight");
  table.freeze([](const ParameterTensor& tensor) { return tensor.name == "k.weight"; });
  EXPECT_EQ(table.find("k.weight"), row);
  EXPECT_THAT(tensors_of(table, 1), ElementsAre("q.weight", "q.bias", "k.bias"));
  EXPECT_THAT(tensors_of(table, 2), ElementsAre("k.weight", "fixed"));
  EXPECT_EQ(table.state_size(1), 6u);
  EXPECT_EQ(table.size(), 72u);
  EXPECT_EQ(table.trained_size(), 58u);
  EXPECT_EQ(table.frozen_size(), 14u);

  table.freeze([](const ParameterTensor& tensor) { return tensor.unit > 0; });
  EXPECT_EQ(table.units().size(), 2u) << "a unit that is frozen as a whole";
  EXPECT_EQ(tensors_of(table, 1).size(), 5u);
  EXPECT_FALSE(table.units()[1].trained);
}

/// Query, key and value weights are read as one matrix, so a frozen one stays with the others.
TEST(ParameterTable, StacksStayTogether) {
  const auto frozen = [](std::set<std::string> names) {
    ParameterTable::Builder builder;
    builder.unit("layer").stack(true).tensor("q", {2, 4}, zeros).tensor("k", {2, 4}, zeros);
    builder.tensor("q.bias", {2}, zeros, {.decay = false}).tensor("k.bias", {2}, zeros, {.decay = false});
    builder.stack(false).tensor("out", {4, 4}, zeros);
    ParameterTable table = builder.build();
    table.freeze([&](const ParameterTensor& tensor) { return names.contains(tensor.name); });
    return table.units()[0].rest ? tensors_of(table, *table.units()[0].rest) : std::vector<std::string>();
  };
  EXPECT_THAT(frozen({"q", "out"}), ElementsAre("out"));
  EXPECT_THAT(frozen({"q.bias"}), ElementsAre());
  EXPECT_THAT(frozen({"q", "k"}), ElementsAre("q", "k"));
  EXPECT_THAT(frozen({"q.bias", "k.bias", "k"}), ElementsAre("q.bias", "k.bias"));
}

TEST(ParameterTable, StateRowsCountWithinTheirUnit) {
  const ParameterTable table = two_units();
  EXPECT_EQ(table.state_size(0), 0u);
  EXPECT_EQ(table.state_size(1), 6u);
  EXPECT_EQ(table.observed_size(), 6u);
  EXPECT_EQ(table.observed_offset(0), 0u);
  EXPECT_EQ(table.observed_offset(1), 0u);
  EXPECT_EQ(table.state_tensors()[table.find_state("count")].offset, 5u);
  EXPECT_FALSE(table.state_tensors()[0].group.trainable);
}

TEST(ParameterTable, ErrorsNameTheRow) {
  using Builder = ParameterTable::Builder;
  EXPECT_THROW(two_units().find("q.wieght"), std::invalid_argument);
  EXPECT_THAT(error_of([] { two_units().find("q.wieght"); }),
              HasSubstr("parameter table: no tensor is called q.wieght"));
  EXPECT_THAT(error_of([] { two_units().find_state("table"); }), HasSubstr("no tensor is called table"));
  EXPECT_THAT(error_of([] { Builder().tensor("early", {1}, zeros); }),
              HasSubstr("parameter table: tensor early comes before the first unit"));
  EXPECT_THAT(error_of([] { Builder().unit("u").tensor("none", {}, zeros); }), HasSubstr("tensor none is empty"));
  EXPECT_THAT(error_of([] { Builder().unit("u").tensor("zero", {3, 0}, zeros); }), HasSubstr("tensor zero is empty"));
  EXPECT_THAT(error_of([] { Builder().unit("u").state("zero", {0}, zeros); }), HasSubstr("tensor zero is empty"));
  EXPECT_THAT(error_of([] { Builder().unit("u").tensor("twin", {1}, zeros).tensor("twin", {2}, zeros).build(); }),
              HasSubstr("parameter table: two tensors are called twin"));
  EXPECT_THAT(error_of([] { Builder().borrow("u"); }), HasSubstr("parameter table: no earlier unit u to borrow from"));
  EXPECT_THAT(error_of([] { Builder().unit("u").borrow("u"); }), HasSubstr("no earlier unit u to borrow from"));
  EXPECT_THAT(error_of([] { Builder().unit("u").unit("v").borrow("w"); }), HasSubstr("no earlier unit w"));
}

std::vector<float> initial(const ParameterTable& table, std::string_view name, std::uint64_t seed) {
  const ParameterTensor& tensor = table.tensor(table.find(name));
  std::vector<float> values(tensor.size, 7.0f);
  initialize(tensor, seed, values);
  return values;
}

TEST(Initialize, FillsByTheRowsOwnRule) {
  const ParameterTable table = two_units();
  EXPECT_THAT(initial(table, "q.bias", 1), ElementsAre(0.0f, 0.0f, 0.0f));
  EXPECT_THAT(initial(table, "fixed", 1), ElementsAre(1.0f, 1.0f));
  ParameterTable::Builder builder;
  builder.unit("u").tensor("large", {100, 300}, normal_);
  double squares = 0.0;
  for (const float value : initial(builder.build(), "large", 1)) squares += static_cast<double>(value) * value;
  EXPECT_NEAR(std::sqrt(squares / 30000.0), 0.02, 0.0005);
}

TEST(Initialize, UniformValuesFillTheirInterval) {
  ParameterTable::Builder builder;
  builder.unit("u").tensor("large", {100, 300}, uniform_);
  std::vector<int> tenths(10);
  for (const float value : initial(builder.build(), "large", 1)) {
    ASSERT_GE(value, -0.3f);
    ASSERT_LT(value, 0.3f);
    ++tenths.at(static_cast<std::size_t>((value + 0.3f) / 0.06001f));
  }
  for (const int count : tenths) EXPECT_NEAR(count, 3000, 250);
}

TEST(Initialize, DependsOnNameAndSeedButNotOnOtherRows) {
  const ParameterTable table = two_units();
  ParameterTable::Builder alone;
  alone.unit("other").tensor("k.weight", {3, 4}, normal_);
  EXPECT_EQ(initial(table, "k.weight", 1), initial(alone.build(), "k.weight", 1));
  EXPECT_NE(initial(table, "k.weight", 1), initial(table, "q.weight", 1));
  EXPECT_NE(initial(table, "k.weight", 1), initial(table, "k.weight", 2));
}

TEST(Initialize, ARangeHasTheValuesOfTheWholeRow) {
  const ParameterTable table = two_units();
  for (const char* name : {"k.weight", "q.bias", "fixed"}) {
    const ParameterTensor& tensor = table.tensor(table.find(name));
    const std::vector<float> whole = initial(table, name, 5);
    for (std::size_t first = 0; first <= tensor.size; ++first) {
      std::vector<float> part((tensor.size - first + 1) / 2, 7.0f);
      initialize(tensor, 5, first, part);
      const auto begin = whole.begin() + static_cast<std::ptrdiff_t>(first);
      EXPECT_TRUE(std::equal(part.begin(), part.end(), begin)) << name << " from " << first;
    }
  }
  std::vector<float> two(2);
  EXPECT_THAT(error_of([&] { initialize(table.tensor(table.find("k.weight")), 1, 11, two); }),
              HasSubstr("tensor k.weight: values 11 to 13 of 12"));
  EXPECT_THAT(error_of([&] { initialize(table.tensor(table.find("k.weight")), 1, two); }),
              HasSubstr("k.weight: 2 values for 12"));
}

}  // namespace
}  // namespace mylos
