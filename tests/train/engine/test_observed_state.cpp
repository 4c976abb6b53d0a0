#include "train/engine/observed_state.hpp"

#include "tests/support/update_control.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace mylos::train {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatEq;

constexpr Initializer zeros{}, ones{Initializer::Kind::ones};

/// Returns a table with a unit without state between two units with state.
ParameterTable example_table() {
  ParameterTable::Builder builder;
  builder.unit("first")
      .tensor("a", {3}, ones)
      .state("mean", {2}, ones)
      .state("updates", {1}, zeros, {StateRule::Kind::count});
  builder.unit("second").tensor("b", {3}, ones);
  builder.unit("third").tensor("c", {3}, ones).state("slow", {1}, ones, {.momentum = 0.5f});
  return builder.build();
}

std::vector<float> host(const Vector<float>& values) {
  const auto copy = Kokkos::create_mirror_view_and_copy(HostSpace(), values);
  return {copy.data(), copy.data() + copy.size()};
}

void fill(const Matrix<float>& rows, const std::vector<float>& values) {
  const auto mirror = Kokkos::create_mirror_view(rows);
  std::copy(values.begin(), values.end(), mirror.data());
  Kokkos::deep_copy(rows, mirror);
}

class ObservedStates : public ::testing::Test {
 protected:
  ObservedStates() {
    for (std::size_t unit = 0; unit < 3; ++unit) Kokkos::deep_copy(store.unit_state(unit), 1.0f);
  }

  ParameterTable table = example_table();
  ParameterStore store{table, Precision::float32, ParameterStore::Purpose::training};
  std::unique_ptr<parallel::Communicator> ranks = parallel::make_self_communicator();
  ObservedState state{store, *ranks};
};

TEST_F(ObservedStates, BecomeTheWeightedMeanOfAllSamples) {
  state.begin_step(3);
  // Two micro-batches and a dummy, whose row is ignored; the second sample in computing order is the batch's first.
  fill(state.rows(0, 2), {1, 10, 7, 100, 4, 40, 7, 400});
  fill(state.rows(2, 1), {8, 80, 7, 800});
  fill(state.rows(3, 1), {1e9f, 1e9f, 1e9f, 1e9f});
  state.update({}, std::vector<double>{2, 1, 1}, std::vector<std::size_t>{1, 0, 2}, tests::update_control());
  // Means: (2 * 4 + 1 + 8) / 4 = 4.25, and ten and a hundred times that.
  EXPECT_THAT(host(store.unit_state(0)), ElementsAre(FloatEq(0.9f + 0.425f), FloatEq(0.9f + 4.25f), 2.0f));
  EXPECT_THAT(host(store.unit_state(2)), ElementsAre(FloatEq(0.5f + 212.5f)));
}

TEST_F(ObservedStates, KeepTheirValuesInAnUpdateThatIsSkipped) {
  state.begin_step(1);
  fill(state.rows(0, 1), {1, 10, 7, std::numeric_limits<float>::quiet_NaN()});
  state.update({}, std::vector<double>{1}, std::vector<std::size_t>{0}, tests::update_control(1.0, true));
  EXPECT_THAT(host(store.unit_state(0)), ElementsAre(1.0f, 1.0f, 1.0f));
  EXPECT_THAT(host(store.unit_state(2)), ElementsAre(1.0f));
}

TEST_F(ObservedStates, DoNotDependOnTheOrderOfComputing) {
  state.begin_step(3);
  const std::vector<float> first = {0.1f, 0.2f, 0, 0.3f}, second = {1e4f, 3e-5f, 0, 7}, third = {-1e4f, 0.7f, 0, 0.1f};
  const auto run = [&](const std::vector<const std::vector<float>*>& order, const std::vector<std::size_t>& positions) {
    for (std::size_t unit = 0; unit < 3; ++unit) Kokkos::deep_copy(store.unit_state(unit), 1.0f);
    for (std::size_t i = 0; i < 3; ++i) fill(state.rows(i, 1), *order[i]);
    state.update({}, std::vector<double>{5, 3, 1}, positions, tests::update_control());
    std::vector<float> all = host(store.unit_state(0));
    all.push_back(host(store.unit_state(2))[0]);
    return all;
  };
  EXPECT_EQ(run({&first, &second, &third}, {0, 1, 2}), run({&third, &first, &second}, {2, 0, 1}));
}

TEST(ObservedState, OfATableWithoutStateIsNothing) {
  ParameterTable::Builder builder;
  builder.unit("only").tensor("a", {3}, ones);
  const ParameterTable table = builder.build();
  const ParameterStore store(table, Precision::float32, ParameterStore::Purpose::training);
  const auto ranks = parallel::make_self_communicator();
  ObservedState state(store, *ranks);
  state.begin_step(4);
  EXPECT_EQ(state.rows(0, 4).size(), 0u);
  state.update({}, std::vector<double>{1}, std::vector<std::size_t>{0}, tests::update_control());
  EXPECT_EQ(ObservedState::bytes(table, 4, 8), 0u);
  EXPECT_EQ(ObservedState::bytes(example_table(), 3, 8), (4 * 4 + 8 * 3) * sizeof(float));
}

}  // namespace
}  // namespace mylos::train
