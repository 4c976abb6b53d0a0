#include "parallel/sharding/step_gathers.hpp"

#include "parallel/sharding/unit_slots.hpp"

namespace mylos::parallel {
namespace {

/// Acquires and releases units like ParameterGatherer, and records what it would gather.
class RecordedGathers {
 public:
  explicit RecordedGathers(const ParameterTable& table) : units_(table.units().size()), slots_(table) {}

  /// Makes values invalid, and begins to gather the unit that is expected first.
  UnitList update() {
    slots_.clear(ignore_);
    return prefetch();
  }
  /// Uses the units as a model does: the last unit stays acquired between the forward and the backward pass.
  PassGathers pass() {
    PassGathers gathers{std::vector<UnitList>(units_), std::vector<UnitList>(units_)};
    for (std::size_t unit = 0; unit < units_; ++unit) {
      gathers.forward[unit] = acquire(unit);
      if (unit + 1 < units_) slots_.release(unit);
    }
    for (std::size_t unit = units_; unit-- > 0;) {
      if (unit + 1 < units_) gathers.backward[unit] = acquire(unit);
      slots_.release(unit);
    }
    return gathers;
  }

 private:
  UnitList acquire(std::size_t unit) {
    UnitList units = units_in(slots_.acquire(unit, ignore_));
    const UnitList next = prefetch();
    units.insert(units.end(), next.begin(), next.end());
    return units;
  }
  UnitList prefetch() { return units_in(slots_.prefetch(ignore_)); }
  UnitList units_in(const UnitSlots::Choice& choice) const {
    UnitList units;
    for (const std::size_t slot : choice.to_gather) units.push_back(slots_.unit_in(slot));
    return units;
  }

  std::size_t units_;
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
