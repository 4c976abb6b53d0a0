#include "parallel/planning/strategy_record.hpp"

#include "parallel/sharding/exact_sum.hpp"

namespace mylos::parallel {
namespace {

/// Records a pass, and returns its gathers. Each unit is acquired once forward, before any is acquired backward.
PassGathers pass_gathers(StrategyRecord& record, std::size_t units) {
  PassGathers gathers{std::vector<UnitList>(units), std::vector<UnitList>(units)};
  using Act = StrategyRecord::Act;
  const std::size_t begin = record.acts().size();
  record.pass(false);
  std::size_t acquired = 0;
  UnitList* list = nullptr;
  for (const Act& act : std::span(record.acts()).subspan(begin)) {
    if (act.kind == Act::Kind::acquire) list = &(acquired++ < units ? gathers.forward : gathers.backward)[act.number];
    const bool gathers_values = act.kind == Act::Kind::begin && act.call.kind == CollectiveCall::Kind::all_gather;
    if (gathers_values) list->push_back(act.unit);
  }
  return gathers;
}

}  // namespace

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

std::vector<Members> groups_of(std::size_t rank, std::size_t ranks, std::size_t shard_size) {
  std::vector<Members> groups(3);
  for (std::size_t member = 0; member < ranks; ++member) {
    groups[CollectiveCall::all].push_back(member);
    if (member / shard_size == rank / shard_size) groups[CollectiveCall::shard].push_back(member);
    if (member % shard_size == rank % shard_size) groups[CollectiveCall::replicate].push_back(member);
  }
  return groups;
}

std::vector<CollectiveCall> calls_of_step(const UnitExchanges& exchanges) {
  StrategyRecord record(exchanges);
  std::size_t begin = 0;
  for (int step = 0; step < 3; ++step) {  // units are prefetched in the order of earlier steps
    begin = record.acts().size();
    record.step(exchanges.settings.micro_batches);
    record.sum_squares();
    record.update();
  }
  std::vector<CollectiveCall> calls;
  for (const StrategyRecord::Act& act : std::span(record.acts()).subspan(begin)) {
    const bool begins = act.kind == StrategyRecord::Act::Kind::begin;
    if (begins && exchanges.ranks_of(act.call.group) > 1) calls.push_back(act.call);
  }
  return calls;
}

std::unique_ptr<Exchange> make_exchange(const CollectiveCall& call, Transport& transport, const RankGroup& group,
                                        const ExchangeRules& rules, std::byte* array) {
  const Parts parts = call.part > 0 ? Parts{call.count, call.part} : divide(call.count, group.size());
  const std::size_t part_bytes = parts.part * bytes_of(call.type);
  std::byte* const mine = array + group.rank * part_bytes;
  switch (call.kind) {
    case CollectiveCall::Kind::all_reduce:
      return make_all_reduce(transport, group, rules, call.type, call.count, array);
    case CollectiveCall::Kind::reduce_scatter:
      return make_reduce_scatter(transport, group, rules, {call.type, array, parts, call.sum_type, mine});
    case CollectiveCall::Kind::all_gather:
      return make_all_gather(transport, group, rules, {call.count * bytes_of(call.type), part_bytes}, mine, array);
    case CollectiveCall::Kind::broadcast:
      return make_broadcast(transport, group, rules, call.root, call.count * bytes_of(call.type), array);
    default:
      return make_gather(transport, group, call.root, part_bytes, mine, array);
  }
}

StepGathers step_gathers(const ParameterTable& table) {
  const UnitExchanges exchanges{.settings = {.kind = StrategyKind::sharded}, .table = table};
  StrategyRecord record(exchanges);
  for (int pass = 0; pass < 2; ++pass) record.pass(false);  // shows the order within a pass and between two
  const std::size_t begin = record.acts().size();
  record.update();
  StepGathers step;
  for (const StrategyRecord::Act& act : std::span(record.acts()).subspan(begin)) {
    if (act.kind == StrategyRecord::Act::Kind::begin) step.update.push_back(act.unit);
  }
  step.first = pass_gathers(record, table.network_units());
  step.later = pass_gathers(record, table.network_units());
  return step;
}

}  // namespace mylos::parallel
