#pragma once

#include "nn/model.hpp"
#include "tasks/interface/run_config.hpp"
#include "train/engine/samples/sample_stream.hpp"

#include <memory>
#include <string>
#include <vector>

namespace mylos::tasks {

/// The inputs of a plan: a model without weights, and the lengths of its samples.
struct PlannedRun {
  RunConfig config;   ///< adapted to the model
  std::string name;   ///< name of the model
  std::string model;  ///< value of train's --model for it
  std::unique_ptr<nn::Model> network;
  train::WorkKind work = {};                                ///< unit of work that steps count
  std::vector<std::size_t> lengths = {};                    ///< rows of the training samples, which are shuffled
  std::shared_ptr<const train::SampleStream> samples = {};  ///< samples of each step, instead of lengths
  std::string data = {};                                    ///< description of the data: "questions.json: 120 windows"
  std::string data_options = {};  ///< options of train that name the data if no file does: "--dataset squad"
};

/// Returns the samples of the steps of a planned run.
std::shared_ptr<const train::SampleStream> planned_samples(const PlannedRun& run);

}  // namespace mylos::tasks
