#include "parallel/sharding/parameter_gatherer.hpp"

#include "tests/parallel/sharding/five_units.hpp"
#include "tests/support/launch.hpp"
#include "tests/support/temporary.hpp"

#include <gmock/gmock.h>

namespace mylos::parallel {
namespace {

class ParameterGathererUnits : public ::testing::Test {
 protected:
  void use(std::size_t unit) {
    units.acquire(space, unit);
    expect_values(unit);
    units.release(unit);
  }
  void expect_values(std::size_t unit) const { model.expect_values(unit, ranks.size()); }

  Communicator& ranks = tests::launch().world();
  FiveUnits model{ranks.size()};
  ParameterGatherer units{ranks, model.store, model.master_weights(ranks)};
  ExecutionSpace space;
};

TEST_F(ParameterGathererUnits, AreCompleteInAnyOrder) {
  for (const std::size_t unit : {0u, 1u, 2u, 3u, 4u, 3u, 2u, 1u, 0u, 4u, 2u, 0u, 4u, 1u, 3u}) {
    use(unit);
    if (unit == 4) expect_values(0);
  }
}

TEST_F(ParameterGathererUnits, StayWhenAUnitThatWasGatheredWithThemLeavesMemory) {
  for (const std::size_t unit : {0u, 1u, 2u, 3u}) use(unit);
  // Units 0 and 4 were prefetched together, but unit 1 comes next. The prefetch of unit 2 takes the memory of unit 0.
  use(1);
  units.acquire(space, 4);
  expect_values(4);
  expect_values(0);
  units.release(4);
}

TEST_F(ParameterGathererUnits, AreGatheredAnewAfterAnUpdate) {
  for (const std::size_t unit : {0u, 1u, 2u, 3u, 4u}) use(unit);
  for (std::size_t unit = 0; unit < model.table.units().size(); ++unit) {
    Kokkos::deep_copy(units.master(unit), static_cast<float>(100 * unit + 7 + ranks.rank()));
  }
  model.added = 7;
  units.invalidate(space, ChangedUnits::all);
  use(4);
  expect_values(0);
  use(0);
}

TEST_F(ParameterGathererUnits, CannotBeMoreThanThereIsMemoryFor) {
  for (const std::size_t unit : {1u, 2u}) units.acquire(space, unit);
  EXPECT_THAT(tests::error_of([&] { units.acquire(space, 4); }),
              ::testing::HasSubstr("gathered units: e is acquired while 3 others are in use"));
}

}  // namespace
}  // namespace mylos::parallel
