#include "parallel/sharding/unit_arrays.hpp"

#include "tests/parallel/sharding/five_units.hpp"
#include "tests/support/launch.hpp"
#include "tests/support/temporary.hpp"

#include <gmock/gmock.h>

namespace mylos::parallel {
namespace {

class GatheredUnits : public ::testing::Test {
 protected:
  void use(std::size_t unit) {
    units.acquire(unit);
    model.expect_values(unit);
    units.release(unit);
  }

  FiveUnits model{tests::launch().world()};
  ValuePolicy& units = *model.values;
};

TEST_F(GatheredUnits, AreCompleteInAnyOrder) {
  for (const std::size_t unit : {0u, 1u, 2u, 3u, 4u, 3u, 2u, 1u, 0u, 4u, 2u, 0u, 4u, 1u, 3u}) {
    use(unit);
    if (unit == 4) model.expect_values(0);
  }
}

TEST_F(GatheredUnits, StayWhenAUnitThatWasGatheredWithThemLeavesMemory) {
  for (const std::size_t unit : {0u, 1u, 2u, 3u}) use(unit);
  // Units 0 and 4 were prefetched together, but unit 1 comes next. The prefetch of unit 2 takes the memory of unit 0.
  use(1);
  units.acquire(4);
  model.expect_values(4);
  model.expect_values(0);
  units.release(4);
}

TEST_F(GatheredUnits, AreGatheredAnewAfterAnUpdate) {
  for (const std::size_t unit : {0u, 1u, 2u, 3u, 4u}) use(unit);
  model.set_master_weights(7);
  units.sync(ChangedUnits::all);
  use(4);
  model.expect_values(0);
  use(0);
}

TEST_F(GatheredUnits, CannotBeMoreThanThereIsMemoryFor) {
  for (const std::size_t unit : {1u, 2u}) units.acquire(unit);
  EXPECT_THAT(tests::error_of([&] { units.acquire(4); }),
              ::testing::HasSubstr("gathered units: e is acquired while 3 others are in use"));
}

}  // namespace
}  // namespace mylos::parallel
