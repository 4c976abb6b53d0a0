#pragma once

#include "core/parameters.hpp"
#include "nn/model.hpp"
#include "tasks/interface/task_kind.hpp"
#include "train/engine/model_exporter.hpp"

#include <memory>

/// Creates image classifiers from checkpoints. The labels, the channels, the stem, and the size, mean and deviation of
/// images come from the run's run.json. Values that run.json does not have come from the model's directory. Errors:
/// std::runtime_error naming the value that does not fit.
namespace mylos::tasks {

std::unique_ptr<nn::Model> make_trained_network(const TrainedModel& trained);

std::unique_ptr<train::ModelExporter> make_trained_exporter(const TrainedModel& trained, const ParameterTable& table);

}  // namespace mylos::tasks
