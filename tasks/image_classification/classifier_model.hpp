#pragma once

#include "core/base/notice.hpp"
#include "data/huggingface/image_processor.hpp"
#include "data/huggingface/pretrained.hpp"
#include "data/huggingface/resnet_config.hpp"
#include "tasks/interface/run_config.hpp"
#include "train/engine/task.hpp"

#include <filesystem>
#include <optional>
#include <string>

/// The model of a run: a directory, or one that is known by its sizes.
namespace mylos::tasks {

struct ClassifierModel {
  std::string name;                                 ///< of the directory, or "resnet50"
  data::ResnetConfig config;                        ///< with the labels of the run
  std::optional<data::PretrainedModel> pretrained;  ///< empty: it begins from the initialiser
  std::optional<data::ImageProcessor> processor;    ///< of the directory
  bool new_classifier = false;                      ///< the directory's last layer has other labels and is not used

  bool has_weights() const { return pretrained && pretrained->has_weights(); }
};

/// Reads what the model's directory says, or takes the sizes of one that is known by its name. Errors:
/// std::runtime_error naming the file.
ClassifierModel read_classifier(const std::filesystem::path& model);

/// Takes the stem that was asked for. Errors: std::runtime_error where the directory's weights have another.
void choose_stem(ClassifierModel& model, std::optional<data::ResnetStem> stem);

/// The type in which a run that began from `model` writes its weights: see export_precision().
Precision classifier_precision(const RunConfig& run, const ClassifierModel& model);

/// Gives `write` the model's weights, in the layout of kernels. `trains`: what is missing of the last layer begins from
/// the initialiser. Errors: std::runtime_error naming what is missing or does not fit.
void read_classifier_weights(const ClassifierModel& model, const ParameterTable& table, bool trains,
                             const train::TensorWriter& write, const Notice& notice);

}  // namespace mylos::tasks
