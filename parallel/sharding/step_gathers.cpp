#include "parallel/sharding/step_gathers.hpp"

#include "parallel/sharding/unit_pass.hpp"
#include "parallel/sharding/unit_slots.hpp"

#include <algorithm>
#include <iterator>

namespace mylos::parallel {
namespace {

/// Acquires and releases units like ParameterGatherer, and records what it would gather.
class RecordedGathers : private UnitHooks {
 public:
  explicit RecordedGathers(const ParameterTable& table) : table_(table), units_(table.network_units()), slots_(table) {}

  /// Makes values invalid, and begins to gather the unit that is expected first.
  UnitList update() {
    slots_.clear(ignore_, ChangedUnits::trained);
    return prefetch();
  }
  PassGathers pass() {
    gathers_ = {std::vector<UnitList>(units_), std::vector<UnitList>(units_)};
    acquired_ = 0;
    pass_over_units(*this, table_, [](std::size_t) {});
    return gathers_;
  }

 private:
  /// Each unit is acquired once forward, before any is acquired backward.
  void acquire(std::size_t unit) override {
    UnitList& units = (acquired_++ < units_ ? gathers_.forward : gathers_.backward)[unit];
    units = units_in(slots_.acquire(unit, ignore_));
    const UnitList next = prefetch();
    units.insert(units.end(), next.begin(), next.end());
  }
  void release(std::size_t unit) override { slots_.release(unit); }
  void gradients_ready(std::size_t) override {}
  UnitList prefetch() { return units_in(slots_.prefetch(ignore_)); }
  UnitList units_in(const UnitSlots::Choice& choice) const {
    UnitList units;
    for (const std::size_t slot : choice.to_gather) {
      std::ranges::copy(table_.parts(slots_.unit_in(slot)), std::back_inserter(units));
    }
    return units;
  }

  const ParameterTable& table_;
  std::size_t units_, acquired_ = 0;
  PassGathers gathers_;
  UnitSlots slots_;
  UnitSlots::Discard ignore_ = [](std::size_t) {};
};

}  // namespace

StepGathers step_gathers(const ParameterTable& table) {
  RecordedGathers gathers(table);
  gathers.update();
  for (int pass = 0; pass < 2; ++pass) gathers.pass();  // shows the order within a pass and between two
  StepGathers step;
  step.update = gathers.update();
  step.first = gathers.pass();
  step.later = gathers.pass();
  return step;
}

}  // namespace mylos::parallel
