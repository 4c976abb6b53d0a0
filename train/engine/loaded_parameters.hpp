#pragma once

#include "core/parameter_store.hpp"
#include "core/unit_hooks.hpp"
#include "parallel/sharding/sharding_strategy.hpp"
#include "train/engine/task.hpp"

#include <memory>

namespace mylos::train {

/// The parameters of a task's model, loaded in a single process for inference.
class LoadedParameters {
 public:
  /// Allocates memory and loads the values. Errors: std::runtime_error naming a tensor without values in the task.
  LoadedParameters(const ExecutionSpace& space, const Task& task, Precision precision);
  LoadedParameters(const LoadedParameters&) = delete;  // mode_ refers to store_
  LoadedParameters& operator=(const LoadedParameters&) = delete;

  const ParameterStore& store() const { return store_; }
  UnitHooks& hooks() { return mode_->hooks(); }

 private:
  ParameterStore store_;
  std::unique_ptr<parallel::ShardingStrategy> mode_;
};

}  // namespace mylos::train
