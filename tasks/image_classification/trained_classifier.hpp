#pragma once

#include "core/parameters.hpp"
#include "nn/model.hpp"
#include "tasks/interface/task_kind.hpp"
#include "train/engine/model_exporter.hpp"

#include <memory>

/// Image classifiers from checkpoints. Labels, channels, stem, and size, mean and deviation of the images come from the
/// run's run.json, or from the model's directory if it does not have them. Errors: std::runtime_error naming the value
/// that does not fit.
namespace mylos::tasks {

std::unique_ptr<nn::Model> make_trained_network(const TrainedModel& trained);

std::unique_ptr<train::ModelExporter> make_trained_exporter(const TrainedModel& trained, const ParameterTable& table);

}  // namespace mylos::tasks
