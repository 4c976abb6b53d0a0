#include "parallel/sharding/gradient_policy.hpp"

#include "core/base/error.hpp"
#include "parallel/sharding/unit_batch.hpp"
#include "parallel/sharding/unit_slots.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

namespace mylos::parallel {
namespace {

constexpr std::size_t no_unit = static_cast<std::size_t>(-1);

/// Gradients are complete on every rank, and micro-batches accumulate in place. After the last one each unit is summed
/// over ranks, while the backward pass of the next units runs. Small units are summed together, except in bfloat16,
/// which is summed one array after another: each unit that waits would need another buffer.
class WholeGradients final : public GradientPolicy {
 public:
  WholeGradients(const UnitExchanges& exchanges, GradientWork& work, std::size_t least_bytes)
      : exchanges_(exchanges),
        work_(work),
        batch_(least_bytes, [this](std::span<const std::size_t> units) { begin(units, units.front()); }) {}

  void ready(std::size_t unit) override {
    if (!is_last()) return;
    if (!exchanges_.settings.bfloat16_gradients) {
      batch_.add(unit, exchanges_.gradient_bytes(unit));
      if (++ready_ == exchanges_.table.trained_units()) batch_.flush();
      return;
    }
    const std::size_t places = exchanges_.gradient_places();
    if (under_way_.size() == places) finish_oldest();
    begin({&unit, 1}, turn_++ % places);
  }
  void finish() override {
    ready_ = 0;
    batch_.flush();
    while (!under_way_.empty()) finish_oldest();
  }

 private:
  void begin(std::span<const std::size_t> units, std::size_t place) {
    work_.sum(units, place);
    under_way_.push_back(place);
  }
  void finish_oldest() {
    work_.finish_sum(under_way_.front());
    under_way_.pop_front();
  }

  const UnitExchanges& exchanges_;
  GradientWork& work_;
  UnitBatch batch_;                    ///< units whose gradients wait to be summed
  std::deque<std::size_t> under_way_;  ///< places of sums, in the order in which they began
  std::size_t turn_ = 0;
  std::size_t ready_ = 0;  ///< number of units that were ready in the last micro-batch
};

/// Each rank keeps one slice of every unit. The gradients of a micro-batch are summed over ranks unit by unit, while
/// the backward pass of the next units runs, and are added to the slice. In the last micro-batch of a step each slice
/// is then summed over the groups that hold the same slices, again while other units compute: in hybrid mode, this is
/// the traffic between nodes.
///
/// One unit is written while another is summed. Each is summed in a call of its own: a unit that waited for others
/// would keep its place from the units after it, and the layers of all but narrow models are long enough for a call
/// (Communicator::least_sum_bytes). Small slices are summed together.
class SlicedGradients final : public GradientPolicy {
 public:
  SlicedGradients(const UnitExchanges& exchanges, GradientWork& work, std::size_t least_bytes)
      : exchanges_(exchanges),
        work_(work),
        slots_(exchanges.gradient_places()),
        slices_(exchanges.table.units().size()),
        batch_(least_bytes, [this](std::span<const std::size_t> units) { sum_slices(units); }) {}

  std::size_t take(std::size_t unit) override {
    auto slot = written(unit);
    if (slot == slots_.end()) slot = std::ranges::find(slots_, no_unit, &Slot::unit);
    if (slot == slots_.end()) slot = oldest_sum(nullptr);
    require(slot != slots_.end(),
            fmt::format("sharded gradients: more than {} units are written at once", slots_.size()));
    if (slot->summing) add_to_slice(*slot);
    slot->unit = unit;
    return place_of(*slot);
  }

  void ready(std::size_t unit) override {
    // If no other unit is trained, its gradients of the micro-batch before may still be summed in another slot.
    const auto slot = written(unit);
    require(slot != slots_.end(), "sharded gradients: a unit is ready twice in a pass");
    if (slot->lent != no_unit) finish_slices({&slot->lent, 1});
    slot->lent = no_unit;
    slot->summing = true;
    slot->last = is_last();
    slot->order = ++order_;
    work_.sum({&unit, 1}, place_of(*slot));
    // Sums that began earlier ran during this unit's pass, so their slices can now be exchanged with the other groups.
    if (is_last()) add_all_to_slices(&*slot);
  }

  void finish() override {
    add_all_to_slices(nullptr);
    const std::size_t trained = exchanges_.table.trained_units();
    require(begun_ == trained,
            fmt::format("gradients: {} of {} units were ready in the last micro-batch", begun_, trained));
    begun_ = 0;
    std::vector<std::size_t> units;
    for (std::size_t unit = 0; unit < slices_.size(); ++unit) {
      if (slices_[unit].under_way) units.push_back(unit);
    }
    finish_slices(units);
    for (Slot& slot : slots_) slot.lent = no_unit;
  }

 private:
  struct Slot {
    std::size_t unit = no_unit;  ///< unit being written or summed
    std::size_t lent = no_unit;  ///< unit whose rounded slice is being exchanged from this slot between groups
    bool summing = false;
    bool last = false;      ///< true if the sum is of the step's last micro-batch
    std::size_t order = 0;  ///< sequence number of the sum
  };
  using SlotAt = std::vector<Slot>::iterator;
  struct Slice {
    std::size_t place = 0;
    bool under_way = false;
  };

  std::size_t place_of(const Slot& slot) const { return static_cast<std::size_t>(&slot - slots_.data()); }
  SlotAt written(std::size_t unit) {
    return std::ranges::find_if(slots_, [&](const Slot& slot) { return slot.unit == unit && !slot.summing; });
  }
  /// Returns the slot whose sum began first. Sums begin in the same order on every rank.
  SlotAt oldest_sum(const Slot* but) {
    SlotAt chosen = slots_.end();
    for (SlotAt slot = slots_.begin(); slot != slots_.end(); ++slot) {
      if (!slot->summing || &*slot == but) continue;
      if (chosen == slots_.end() || slot->order < chosen->order) chosen = slot;
    }
    return chosen;
  }

  void add_to_slice(Slot& slot) {
    work_.finish_sum(place_of(slot));
    if (slot.last) begin_slice(slot);
    slot.unit = no_unit;
    slot.summing = false;
  }
  void add_all_to_slices(const Slot* but) {
    for (SlotAt slot = oldest_sum(but); slot != slots_.end(); slot = oldest_sum(but)) add_to_slice(*slot);
  }

  /// Starts to sum a slice, immediately or together with slices that follow.
  void begin_slice(Slot& slot) {
    const std::size_t unit = slot.unit;
    if (exchanges_.rounds_slices()) slot.lent = unit;
    slices_[unit] = {place_of(slot), true};
    const CollectiveCall call = exchanges_.sum_slice(unit);
    batch_.add(unit, call.count * bytes_of(call.type));
    if (++begun_ == exchanges_.table.trained_units()) batch_.flush();
  }
  void sum_slices(std::span<const std::size_t> units) {
    std::vector<PlacedUnit> placed;
    for (const std::size_t unit : units) placed.push_back({unit, slices_[unit].place});
    work_.sum_slices(placed);
  }
  void finish_slices(std::span<const std::size_t> units) {
    batch_.flush();  // the sums may not have begun
    work_.finish_slices(units);
    for (const std::size_t unit : units) slices_[unit].under_way = false;
  }

  const UnitExchanges& exchanges_;
  GradientWork& work_;
  std::vector<Slot> slots_;
  std::vector<Slice> slices_;  ///< by unit
  UnitBatch batch_;            ///< units whose slices wait to be summed
  std::size_t order_ = 0;
  std::size_t begun_ = 0;  ///< number of slices whose sum began in this step
};

}  // namespace

std::unique_ptr<GradientPolicy> make_gradient_policy(const UnitExchanges& exchanges, GradientWork& work,
                                                     LeastSums least) {
  if (shards_gradients(exchanges.settings.kind)) {
    return std::make_unique<SlicedGradients>(exchanges, work, least.slices);
  }
  return std::make_unique<WholeGradients>(exchanges, work, least.gradients);
}

}  // namespace mylos::parallel
