#include "app/batch/batch_runs.hpp"

namespace mylos::app {

using parallel::ModeKind;

std::vector<ModeKind> tried_modes(const Arguments& arguments, std::size_t ranks) {
  std::vector<ModeKind> modes;
  if (arguments.sources.was_given("modes")) {
    for (const std::string& name : arguments.modes) modes.push_back(parallel::parse_mode(name).value());
    return modes;
  }
  modes.push_back(ModeKind::replicated);
  if (ranks > 1) modes.push_back(ModeKind::sharded);
  return modes;
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
  engine.parallel.mode = setting.mode;
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
