#include "parallel/planning/strategy_record.hpp"

#include "parallel/sharding/exact_sum.hpp"

namespace mylos::parallel {

StrategyRecord::StrategyRecord(const UnitExchanges& exchanges)
    : exchanges_(exchanges),
      gathered_(exchanges.value_places()),
      sums_(exchanges.gradient_places()),
      slices_(exchanges.table.units().size()),
      values_(make_value_policy(exchanges, *this, 0)),
      gradients_(make_gradient_policy(exchanges, *this, {})) {
  values_->sync(ChangedUnits::all);
}

void StrategyRecord::step(std::size_t micro_batches) {
  for (std::size_t micro_batch = 1; micro_batch <= micro_batches; ++micro_batch) pass(micro_batch == micro_batches);
  gradients_->finish();
}

// The last unit stays acquired between the forward and the backward pass, which ends at the first trained unit.
void StrategyRecord::pass(bool last) {
  const ParameterTable& table = exchanges_.table;
  const std::size_t units = table.network_units();
  gradients_->begin_micro_batch(last);
  for (std::size_t unit = 0; unit < units; ++unit) {
    acquire(unit);
    if (unit + 1 < units) values_->release(unit);
  }
  for (std::size_t unit = units; unit-- > table.first_trained_unit();) {
    if (unit + 1 < units) acquire(unit);
    for (const std::size_t written : table.read_by(unit)) {
      if (table.units()[written].trained) gradients_->take(written);
    }
    values_->release(unit);
    if (table.units()[unit].trained) gradients_->ready(unit);
  }
}

void StrategyRecord::sum_squares() {
  const std::size_t values = exchanges_.settings.tree_sums ? ExactSum::bytes / sizeof(double) : 1;
  exchange({.count = values, .type = ElementType::float64, .group = CollectiveCall::shard});
}

void StrategyRecord::predict() {
  for (std::size_t unit = 0; unit < exchanges_.table.network_units(); ++unit) {
    acquire(unit);
    values_->release(unit);
  }
}

std::size_t StrategyRecord::begin(const CollectiveCall& call, std::size_t unit) {
  acts_.push_back({.kind = Act::Kind::begin, .number = begun_, .call = call, .unit = unit});
  return begun_++;
}

/// The last call covers the earlier ones.
void StrategyRecord::wait(const Calls& calls) {
  if (!calls.empty()) acts_.push_back({.kind = Act::Kind::wait, .number = calls.back()});
}

void StrategyRecord::acquire(std::size_t unit) {
  acts_.push_back({.kind = Act::Kind::acquire, .number = unit});
  values_->acquire(unit);
}

void StrategyRecord::gather(std::span<const PlacedUnit> units) {
  Calls calls;
  for (const PlacedUnit& placed : units) {
    for (const std::size_t part : exchanges_.gathered_with(placed.unit)) {
      calls.push_back(begin(exchanges_.gather(part), part));
    }
  }
  for (const PlacedUnit& placed : units) gathered_[placed.place] = calls;
}

void StrategyRecord::discard(PlacedUnit unit) {
  for (const std::size_t call : gathered_[unit.place]) acts_.push_back({.kind = Act::Kind::drop, .number = call});
}

void StrategyRecord::sum(std::span<const std::size_t> units, std::size_t place) {
  sums_[place].clear();
  for (const std::size_t unit : units) sums_[place].push_back(begin(exchanges_.sum(unit), unit));
}

void StrategyRecord::sum_slices(std::span<const PlacedUnit> units) {
  for (const PlacedUnit& placed : units) {
    slices_[placed.unit] = {begin(exchanges_.sum_slice(placed.unit), placed.unit)};
  }
}

void StrategyRecord::finish_slices(std::span<const std::size_t> units) {
  for (const std::size_t unit : units) wait(slices_[unit]);
}

}  // namespace mylos::parallel
