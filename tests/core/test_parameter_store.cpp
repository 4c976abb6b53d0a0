#include "core/parameter_store.hpp"

#include "tests/support/arrays.hpp"
#include "tests/support/temporary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

namespace mylos {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using tests::error_of;
using Purpose = ParameterStore::Purpose;

ParameterTable two_stored_units() {
  const Initializer zeros;
  const ParameterGroup no_decay{.decay = false};
  ParameterTable::Builder builder;
  builder.unit("embeddings").tensor("table", {10, 4}, zeros);
  builder.unit("layer")
      .tensor("q.weight", {3, 4}, zeros)
      .tensor("k.weight", {3, 4}, zeros)
      .tensor("filter", {5, 2, 3}, zeros)
      .tensor("q.bias", {3}, zeros, no_decay)
      .state("running", {5}, zeros)
      .state("count", {1}, zeros);
  return builder.build();
}

MYLOS_TEST_OF_TYPES(Store, RowsAreViewsIntoTheirUnit, float, bfloat16) {
  const ParameterTable table = two_stored_units();
  const ParameterStore store(table, precision_of<T>, Purpose::training);
  const Vector<T> unit = store.unit_values<T>(1);
  EXPECT_EQ(unit.size(), table.units()[1].size);
  const std::size_t k = table.find("k.weight");
  EXPECT_EQ(store.values<T>(k).data(), unit.data() + 12);
  EXPECT_EQ(store.values<T>(k).size(), 12u);
  EXPECT_EQ(store.matrix<T>(k).extent(0), 3u);
  EXPECT_EQ(store.matrix<T>(k).extent(1), 4u);
  EXPECT_EQ(store.gradient(k).data(), store.unit_gradients(1).data() + 12);
  EXPECT_EQ(store.gradient_matrix(k).extent(1), 4u);
  const std::size_t filter = table.find("filter");
  EXPECT_EQ(store.matrix<T>(filter).extent(0), 5u);
  EXPECT_EQ(store.matrix<T>(filter).extent(1), 6u);
  EXPECT_EQ(store.state(table.find_state("count")).data(), store.unit_state(1).data() + 5);
}

MYLOS_TEST_OF_TYPES(Store, NeighboursStackIntoOneMatrix, float, bfloat16) {
  const ParameterTable table = two_stored_units();
  const ParameterStore store(table, precision_of<T>, Purpose::training);
  const std::size_t q = table.find("q.weight");
  EXPECT_EQ(store.stacked_matrix<T>(q, 2).data(), store.values<T>(q).data());
  EXPECT_EQ(store.stacked_matrix<T>(q, 2).extent(0), 6u);
  EXPECT_EQ(store.stacked_values<T>(q, 2).size(), 24u);
  EXPECT_EQ(store.stacked_gradient_matrix(q, 2).extent(0), 6u);
  EXPECT_EQ(store.stacked_gradient(q, 2).size(), 24u);
  // Tensors of different heights, too.
  ParameterTable::Builder builder;
  builder.unit("layer").tensor("q", {6, 4}, {}).tensor("k", {2, 4}, {}).tensor("v", {2, 4}, {});
  const ParameterTable unlike = builder.build();
  const ParameterStore other(unlike, precision_of<T>, Purpose::training);
  EXPECT_EQ(other.stacked_matrix<T>(0, 3).extent(0), 10u);
  EXPECT_EQ(other.stacked_matrix<T>(0, 3).extent(1), 4u);
  EXPECT_EQ(other.stacked_gradient_matrix(0, 3).extent(0), 10u);
  EXPECT_EQ(other.stacked_values<T>(1, 2).data(), other.values<T>(1).data());
}

MYLOS_TEST_OF_TYPES(Store, CountsItsBytes, float, bfloat16) {
  const ParameterTable table = two_stored_units();
  const std::size_t elements = table.size(), state = 6 * sizeof(float);
  EXPECT_EQ(ParameterStore(table, precision_of<T>, Purpose::inference).bytes(), elements * sizeof(T) + state);
  EXPECT_EQ(ParameterStore(table, precision_of<T>, Purpose::training).bytes(),
            elements * (sizeof(T) + sizeof(float)) + state);
}

TEST(ParameterStore, GradientsAndStateBeginAtZero) {
  const ParameterTable table = two_stored_units();
  const ParameterStore store(table, Precision::bfloat16, Purpose::training);
  for (std::size_t unit = 0; unit < 2; ++unit) {
    for (const Vector<float>& array : {store.unit_gradients(unit), store.unit_state(unit)}) {
      const auto host = Kokkos::create_mirror_view_and_copy(HostSpace(), array);
      for (std::size_t i = 0; i < host.size(); ++i) EXPECT_EQ(host(i), 0.0f);
    }
  }
}

std::vector<float> gradients_of(const ParameterStore& store, std::size_t tensor) {
  const ParameterTensor& description = store.table().tensor(tensor);
  const auto unit = Kokkos::create_mirror_view_and_copy(HostSpace(), store.unit_gradients(description.unit));
  return {unit.data() + description.offset, unit.data() + description.offset + description.size};
}

void fill_gradients(const ParameterStore& store, float value) {
  for (std::size_t unit = 0; unit < 2; ++unit) Kokkos::deep_copy(store.unit_gradients(unit), value);
}

/// Begins a step, after filling the gradients with `value`.
void begin_after(const ParameterStore& store, float value) {
  fill_gradients(store, value);
  store.begin_gradients(ExecutionSpace());
  Kokkos::fence();
}

TEST(ParameterStore, RowsThatAreWrittenWholeAreNotClearedBefore) {
  const ParameterTable table = two_stored_units();
  const ParameterStore store(table, Precision::float32, Purpose::training);
  const std::size_t q = table.find("q.weight"), k = table.find("k.weight"), filter = table.find("filter");
  begin_after(store, 7.0f);
  for (std::size_t tensor = 0; tensor < table.tensors().size(); ++tensor)
    EXPECT_THAT(gradients_of(store, tensor), Each(0.0f));
  EXPECT_TRUE(store.begins_gradient(q, 2));
  EXPECT_FALSE(store.begins_gradient(q, 1)) << "it has begun";
  begin_after(store, 7.0f);
  EXPECT_THAT(gradients_of(store, q), Each(7.0f));
  EXPECT_THAT(gradients_of(store, k), Each(7.0f));
  for (const std::size_t tensor : {table.find("table"), filter, table.find("q.bias")}) {
    EXPECT_THAT(gradients_of(store, tensor), Each(0.0f));
  }
  EXPECT_TRUE(store.begins_gradient(q, 2)) << "the first micro-batch";
  EXPECT_FALSE(store.begins_gradient(q, 2)) << "the second";
  EXPECT_THAT(gradients_of(store, q), Each(7.0f));
}

TEST(ParameterStore, GradientsThatNobodyWroteAreZeroInTheEnd) {
  const ParameterTable table = two_stored_units();
  const ParameterStore store(table, Precision::float32, Purpose::training);
  const std::size_t q = table.find("q.weight");
  begin_after(store, 7.0f);
  store.begins_gradient(q, 2);
  begin_after(store, 7.0f);
  for (std::size_t unit = 0; unit < table.units().size(); ++unit) store.finish_gradients(ExecutionSpace(), unit);
  for (std::size_t tensor = 0; tensor < table.tensors().size(); ++tensor)
    EXPECT_THAT(gradients_of(store, tensor), Each(0.0f));
}

TEST(ParameterStore, ARowThatIsAddedToFirstIsClearedFromThenOn) {
  const ParameterTable table = two_stored_units();
  const ParameterStore store(table, Precision::float32, Purpose::training);
  const std::size_t q = table.find("q.weight"), k = table.find("k.weight");
  begin_after(store, 7.0f);
  store.begins_gradient(q, 2);
  begin_after(store, 7.0f);
  store.gradient(k);
  EXPECT_THAT(gradients_of(store, k), Each(0.0f));
  EXPECT_FALSE(store.begins_gradient(q, 2)) << "one of them is added to";
  store.stacked_gradient(q, 2);
  EXPECT_THAT(gradients_of(store, q), Each(0.0f));
  for (int step = 0; step < 2; ++step) {
    begin_after(store, 7.0f);
    EXPECT_THAT(gradients_of(store, q), Each(0.0f));
    EXPECT_THAT(gradients_of(store, k), Each(0.0f));
    EXPECT_TRUE(store.begins_gradient(q, 2));
  }
}

TEST(ParameterStore, WithoutAStepGradientsAreAddedTo) {
  const ParameterTable table = two_stored_units();
  const ParameterStore store(table, Precision::float32, Purpose::training);
  EXPECT_FALSE(store.begins_gradient(table.find("q.weight"), 2));
}

TEST(ParameterStore, ErrorsNameBothSides) {
  const ParameterTable table = two_stored_units();
  const ParameterStore store(table, Precision::float32, Purpose::inference);
  EXPECT_THROW(store.unit_values<bfloat16>(0), std::invalid_argument);
  EXPECT_THAT(error_of([&] { store.values<bfloat16>(0); }),
              HasSubstr("parameter store: asked for bfloat16 values, holds float"));
  EXPECT_THAT(error_of([&] { store.gradient(0); }),
              HasSubstr("parameter store: gradients of a store that was made for inference"));
  const std::size_t q = table.find("q.weight");
  EXPECT_THAT(error_of([&] { store.stacked_matrix<float>(q, 3); }),
              HasSubstr("parameter store: filter does not follow q.weight directly"));
  EXPECT_THAT(error_of([&] { store.stacked_values<float>(table.find("q.bias"), 2); }),
              HasSubstr("parameter store: tensors 4 to 6 of 5"));
}

}  // namespace
}  // namespace mylos
