#pragma once

#include "core/arena.hpp"
#include "core/kernels/products/gemm.hpp"
#include "core/parameter_store.hpp"
#include "nn/learning_rate.hpp"
#include "nn/optimizer.hpp"
#include "parallel/sharding/sharding_strategy.hpp"
#include "train/engine/loop/training_step.hpp"
#include "train/engine/memory/memory_plan.hpp"
#include "train/engine/memory/rank_layout.hpp"
#include "train/engine/models/model_predictor.hpp"
#include "train/engine/task.hpp"
#include "train/engine/train_config.hpp"

#include <cstddef>
#include <filesystem>
#include <memory>
#include <vector>

namespace mylos::train {

/// The objects that are set up once for a run; its steps, evaluations, checkpoints and exports use them. They refer to
/// one another.
struct RunSetup {
  /// Plans the memory of the run and allocates it. The parameters have no values yet. `trained` and the communicator of
  /// `given` must outlive this object. Collective, and an error of one rank is thrown on all. Errors: those of Trainer.
  RunSetup(const TrainConfig& configuration, Task& trained, const Ranks& given);
  RunSetup(const RunSetup&) = delete;
  RunSetup& operator=(const RunSetup&) = delete;

  /// Exports the model to the directory called `name` in the output directory. Collective.
  void export_model(const std::filesystem::path& name) const;

  TrainConfig config;
  Task& task;
  Ranks ranks;
  ExecutionSpace space;
  std::size_t steps;                          ///< total steps of the run
  std::unique_ptr<parallel::Mesh> connected;  ///< keeps devices connected from before the plan until `mesh` is made
  MemoryPlan plan;
  nn::LearningRateSchedule schedule;
  Gemm gemm;
  parallel::Mesh mesh;
  ParameterStore store;
  std::unique_ptr<parallel::ShardingStrategy> strategy;
  std::unique_ptr<nn::Optimizer> optimizer;
  Arena arena;
  std::unique_ptr<TrainingStep> step;
  std::unique_ptr<ModelPredictor> predictor;
  std::vector<std::size_t> writer_of;  ///< for each rank, the rank that writes its data to checkpoints and exports
};

}  // namespace mylos::train
