#include "parallel/sharding/value_policy.hpp"

#include "parallel/sharding/unit_batch.hpp"
#include "parallel/sharding/unit_slots.hpp"

#include <vector>

namespace mylos::parallel {
namespace {

/// Values are complete on every rank. After an update, each unit is gathered before it is acquired, small ones
/// together.
class WholeValues final : public ValuePolicy {
 public:
  WholeValues(const UnitExchanges& exchanges, ValueWork& work, std::size_t least_bytes)
      : exchanges_(exchanges), work_(work), least_bytes_(least_bytes) {}

  void sync(ChangedUnits changed) override {
    UnitBatch batch(least_bytes_, [this](std::span<const std::size_t> units) { gather(units); });
    for (std::size_t unit = 0; unit < exchanges_.table.units().size(); ++unit) {
      if (changed == ChangedUnits::trained && !exchanges_.table.units()[unit].trained) continue;
      // If no pass acquired the unit, its previous exchange has not been waited for. Its result is outdated, as are
      // those of the units that were exchanged with it, and the optimizer has written to the same memory.
      work_.discard({unit, unit});
      batch.add(unit, exchanges_.value_bytes(unit));
    }
    batch.flush();
  }
  void acquire(std::size_t unit) override {
    for (const std::size_t read : exchanges_.table.read_by(unit)) work_.complete({read, read});
  }
  void release(std::size_t) override {}

 private:
  void gather(std::span<const std::size_t> units) {
    std::vector<PlacedUnit> placed;
    for (const std::size_t unit : units) placed.push_back({unit, unit});
    work_.gather(placed);
  }

  const UnitExchanges& exchanges_;
  ValueWork& work_;
  std::size_t least_bytes_;
};

/// A few units are complete at a time. The next unit is gathered while the current one computes: the one that followed
/// the last two acquired units the last time. A unit and the units whose tensors it reads are gathered together.
class GatheredValues final : public ValuePolicy {
 public:
  GatheredValues(const UnitExchanges& exchanges, ValueWork& work) : work_(work), slots_(exchanges.table) {}

  void sync(ChangedUnits changed) override {
    slots_.clear([this](std::size_t slot) { work_.discard(in(slot)); }, changed);
    prefetch();
  }
  void acquire(std::size_t unit) override {
    const UnitSlots::Choice choice = slots_.acquire(unit, give_way_);
    gather(choice.to_gather);
    prefetch();
    for (const std::size_t slot : choice.held) work_.complete(in(slot));
  }
  void release(std::size_t unit) override { slots_.release(unit); }

 private:
  PlacedUnit in(std::size_t slot) const { return {slots_.unit_in(slot), slot}; }
  void prefetch() { gather(slots_.prefetch(give_way_).to_gather); }
  void gather(const std::vector<std::size_t>& slots) {
    if (slots.empty()) return;
    std::vector<PlacedUnit> placed;
    for (const std::size_t slot : slots) placed.push_back(in(slot));
    work_.gather(placed);
  }

  ValueWork& work_;
  UnitSlots slots_;
  // The unit may be a wrong prediction that was never read. To discard it would lose the results of units that were
  // gathered together with it.
  UnitSlots::Discard give_way_ = [this](std::size_t slot) { work_.give_way(in(slot)); };
};

}  // namespace

std::unique_ptr<ValuePolicy> make_value_policy(const UnitExchanges& exchanges, ValueWork& work,
                                               std::size_t least_bytes) {
  if (shards_values(exchanges.settings.kind)) return std::make_unique<GatheredValues>(exchanges, work);
  return std::make_unique<WholeValues>(exchanges, work, least_bytes);
}

}  // namespace mylos::parallel
