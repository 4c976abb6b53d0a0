#pragma once

#include "nn/optimizer.hpp"
#include "train/engine/best_model.hpp"
#include "train/engine/model_predictor.hpp"
#include "train/engine/run_checkpoints.hpp"
#include "train/engine/sent_bytes.hpp"
#include "train/engine/train_config.hpp"
#include "train/engine/training_step.hpp"

namespace mylos::train {

/// The objects that a run trains, evaluates and saves with. All outlive their users.
struct RunParts {
  const TrainConfig& config;
  Task& task;
  parallel::Communicator& ranks;
  const ExecutionSpace& space;
  const ParameterStore& store;
  parallel::ShardingStrategy& mode;
  nn::Optimizer& optimizer;
  TrainingStep& step;
  ModelPredictor& predictor;
  RunCheckpoints& checkpoints;
  BestModel& best;
  const nn::LearningRateSchedule& schedule;
  SentBytes& sent;
  std::size_t steps;  ///< total steps of the run
};

}  // namespace mylos::train
