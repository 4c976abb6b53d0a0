#include "parallel/planning/step_gathers.hpp"

#include "parallel/planning/strategy_record.hpp"

#include <span>

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
