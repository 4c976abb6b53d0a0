#pragma once

#include "core/parameter_store.hpp"
#include "core/unit_hooks.hpp"
#include "parallel/sharding/sharding_strategy.hpp"
#include "train/engine/task.hpp"

#include <memory>

namespace mylos::train {

/// The parameters of a task's model in one process, for inference.
class LoadedParameters {
 public:
  /// Takes memory and loads the values. Errors: std::runtime_error naming a tensor that the task has no values for.
  LoadedParameters(const ExecutionSpace& space, const Task& task, Precision precision);
  LoadedParameters(const LoadedParameters&) = delete;  // the mode refers to the store
  LoadedParameters& operator=(const LoadedParameters&) = delete;

  const ParameterStore& store() const { return store_; }
  UnitHooks& schedule() { return mode_->schedule(); }

 private:
  ParameterStore store_;
  std::unique_ptr<parallel::ShardingStrategy> mode_;
};

}  // namespace mylos::train
