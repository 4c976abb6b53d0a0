#include "app/batch/batch_runs.hpp"

namespace mylos::app {

using parallel::StrategyKind;

std::vector<StrategyKind> tried_strategies(const Arguments& arguments, std::size_t ranks) {
  std::vector<StrategyKind> strategies;
  if (arguments.sources.was_given("modes")) {
    for (const std::string& name : arguments.strategies) strategies.push_back(parallel::parse_strategy(name).value());
    return strategies;
  }
  strategies.push_back(StrategyKind::replicated);
  if (ranks > 1) strategies.push_back(StrategyKind::sharded);
  return strategies;
}

std::vector<nn::Recompute> tried_recomputations(const Arguments& arguments, const nn::Model& model) {
  if (arguments.sources.was_given("recompute")) return {arguments.run.engine.recompute};
  std::vector<nn::Recompute> all = {nn::Recompute::none};
  if (model.can_recompute(nn::Recompute::layer)) all.push_back(nn::Recompute::layer);
  return all;
}

Arguments with_setting(const Arguments& configured, const BatchSetting& setting) {
  Arguments arguments = configured;
  train::TrainConfig& engine = arguments.run.engine;
  engine.parallel.strategy = setting.strategy;
  engine.recompute = setting.recompute;
  engine.micro_batch = setting.micro_batch;
  return arguments;
}

std::vector<TrainOption> row_options(const Arguments& arguments, const BatchSetting& setting) {
  std::set<std::string, std::less<>> names = arguments.sources.given;
  names.insert("recompute");  // the row has its own
  return train_options(with_setting(arguments, setting), names);
}

}  // namespace mylos::app
