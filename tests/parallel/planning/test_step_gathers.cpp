#include "parallel/planning/strategy_record.hpp"

#include "parallel/communicator/exchanges/parts.hpp"
#include "tests/parallel/sharding/five_units.hpp"
#include "tests/support/launch.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <functional>

namespace mylos::parallel {
namespace {

using ::testing::ElementsAre;

ParameterTable equal_units(std::size_t units) {
  ParameterTable::Builder builder;
  for (std::size_t unit = 0; unit < units; ++unit) {
    const std::string name = fmt::format("{}", unit);
    builder.unit(name).tensor(name, {8}, {});
  }
  return builder.build();
}

TEST(StepGathers, LeaveOutTheUnitsThatAreStillInMemory) {
  const StepGathers step = step_gathers(equal_units(5));
  EXPECT_THAT(step.update, ElementsAre(0));
  const UnitList none;
  EXPECT_THAT(step.first.forward, ElementsAre(UnitList{1}, UnitList{2}, UnitList{3}, UnitList{4}, none));
  EXPECT_THAT(step.first.backward, ElementsAre(none, UnitList{0}, UnitList{1}, UnitList{2}, none));
  EXPECT_THAT(step.later.forward, ElementsAre(none, UnitList{2}, UnitList{3}, UnitList{4}, none));
  EXPECT_THAT(step.later.backward, ElementsAre(none, UnitList{0}, UnitList{1}, UnitList{2}, none));
}

TEST(StepGathers, AreEachUnitOnceIfAllFitIntoMemory) {
  const StepGathers step = step_gathers(equal_units(2));
  EXPECT_THAT(step.update, ElementsAre(0));
  EXPECT_THAT(step.first.forward, ElementsAre(UnitList{1}, UnitList{}));
  for (const PassGathers& pass : {step.first, step.later})
    EXPECT_THAT(pass.backward, ElementsAre(UnitList{}, UnitList{}));
  EXPECT_THAT(step.later.forward, ElementsAre(UnitList{}, UnitList{}));
}

/// Counts what ranks send in the passes of a step.
class CountedGathers : public ::testing::Test {
 protected:
  std::uint64_t sent_by(const std::function<void()>& action) {
    ranks.barrier("what was begun");  // follows all gathers
    const std::uint64_t before = sent_bytes();
    action();
    ranks.barrier("what was begun");
    return sent_bytes() - before;
  }
  void update() { model.values->sync(ChangedUnits::all); }
  void pass() {
    const std::size_t count = model.table.units().size();
    for (std::size_t unit = 0; unit < count; ++unit) {
      model.values->acquire(unit);
      if (unit + 1 < count) model.values->release(unit);
    }
    for (std::size_t unit = count; unit-- > 0;) {
      if (unit + 1 < count) model.values->acquire(unit);
      model.values->release(unit);
    }
  }
  /// Returns the bytes that a rank sends to the others when these units are gathered.
  std::uint64_t bytes_of(const UnitList& list) const {
    std::uint64_t bytes = 0;
    for (const std::size_t unit : list) {
      const Parts parts{model.table.units()[unit].size, model.store.capacity(unit) / ranks.size()};
      bytes += parts.piece(ranks.rank(), 0, parts.part).size * (ranks.size() - 1) * 4;
    }
    return bytes;
  }
  std::uint64_t bytes_of(const PassGathers& gathers) const {
    std::uint64_t bytes = 0;
    for (const UnitList& list : gathers.forward) bytes += bytes_of(list);
    for (const UnitList& list : gathers.backward) bytes += bytes_of(list);
    return bytes;
  }

  Communicator& ranks = tests::launch().world();
  FiveUnits model{ranks};
};

TEST_F(CountedGathers, AreThoseOfThePlan) {
  const StepGathers planned = step_gathers(model.table);
  for (std::size_t step = 0; step < 3; ++step) {
    const std::uint64_t updated = sent_by([&] { update(); });
    std::vector<std::uint64_t> sent;
    for (std::size_t micro_batch = 0; micro_batch < 3; ++micro_batch) sent.push_back(sent_by([&] { pass(); }));
    if (step == 0) continue;  // does not know the order of units yet
    EXPECT_EQ(updated, bytes_of(planned.update));
    EXPECT_THAT(sent, ElementsAre(bytes_of(planned.first), bytes_of(planned.later), bytes_of(planned.later)));
  }
}

}  // namespace
}  // namespace mylos::parallel
