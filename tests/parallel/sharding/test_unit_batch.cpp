#include "parallel/sharding/unit_batch.hpp"

#include <gmock/gmock.h>

#include <vector>

namespace mylos::parallel {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Units = std::vector<std::size_t>;

struct Batches {
  explicit Batches(std::size_t least_bytes)
      : batch(least_bytes,
              [this](std::span<const std::size_t> units) { all.emplace_back(units.begin(), units.end()); }) {}

  std::vector<Units> all;
  UnitBatch batch;
};

TEST(UnitBatch, CollectsSmallUnitsUntilTheyHaveEnoughBytes) {
  Batches batches(100);
  for (const std::size_t unit : {7u, 6u, 5u}) batches.batch.add(unit, 40);
  EXPECT_THAT(batches.all, ElementsAre(Units{7, 6, 5}));
  batches.batch.add(4, 99);
  EXPECT_EQ(batches.all.size(), 1u);
  batches.batch.flush();
  EXPECT_THAT(batches.all, ElementsAre(Units{7, 6, 5}, Units{4}));
}

TEST(UnitBatch, PassesALargeUnitAloneAfterThoseBeforeIt) {
  Batches batches(100);
  batches.batch.add(3, 10);
  batches.batch.add(2, 100);
  batches.batch.add(1, 10);
  batches.batch.flush();
  EXPECT_THAT(batches.all, ElementsAre(Units{3}, Units{2}, Units{1}));
}

TEST(UnitBatch, CollectsNothingIfNoBytesAreEnough) {
  Batches batches(0);
  batches.batch.add(1, 0);
  batches.batch.add(2, 10);
  EXPECT_THAT(batches.all, ElementsAre(Units{1}, Units{2}));
}

TEST(UnitBatch, PassesNothingIfNothingWasCollected) {
  Batches batches(100);
  batches.batch.flush();
  EXPECT_THAT(batches.all, IsEmpty());
}

}  // namespace
}  // namespace mylos::parallel
