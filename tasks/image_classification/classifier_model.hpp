#pragma once

#include "core/base/notice.hpp"
#include "core/parameters.hpp"
#include "data/huggingface/image_processor.hpp"
#include "data/huggingface/pretrained.hpp"
#include "families/interface/image_model.hpp"
#include "nn/model.hpp"
#include "tasks/image_classification/image_input.hpp"
#include "tasks/interface/run_config.hpp"
#include "train/engine/model_exporter.hpp"
#include "train/engine/task.hpp"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

/// The model of a run: a directory, or built-in sizes.
namespace mylos::tasks {

struct ClassifierModel {
  std::string name;                                 ///< name of the directory, or of built-in sizes
  std::unique_ptr<families::ImageModel> images;     ///< with the labels of the run
  std::optional<data::PretrainedModel> pretrained;  ///< nullopt: the model starts from the initialiser
  std::optional<data::ImageProcessor> processor;    ///< preprocessing from the directory
  bool new_classifier = false;                      ///< the directory's last layer has other labels and is not used

  bool has_weights(const FileReader& files) const { return pretrained && pretrained->has_weights(files); }
};

/// Reads the configuration in the model's directory, or takes the built-in sizes of that name, with the weights in
/// `weights` unless that is empty. Errors: std::runtime_error naming the file.
ClassifierModel read_classifier(const FileReader& files, const std::filesystem::path& model,
                                const std::filesystem::path& weights = {});

/// Sets the requested stem. Errors: std::runtime_error if the directory's weights have another one.
void choose_stem(const FileReader& files, ClassifierModel& model, std::optional<families::ImageStem> stem);

/// Returns what a network reads of images of `input`.
families::ImageFormat format_of(const ImageInput& input);
/// Returns the network of the model, without weights, for images of `input`. Errors: those of ImageModel::network.
std::unique_ptr<nn::Model> make_network(const ClassifierModel& model, const ImageInput& input, Precision precision,
                                        double label_smoothing = 0.0);

/// Returns the type in which a run that started from `model` writes its weights; see export_precision().
Precision classifier_precision(const FileReader& files, const RunConfig& run, const ClassifierModel& model);

/// Passes the model's weights to `write`, in the layout of the kernels. With `trains`, missing tensors of the last
/// layer start from the initialiser. Errors: std::runtime_error naming a tensor that is missing or does not fit.
void read_classifier_weights(const FileReader& files, const ClassifierModel& model, const ParameterTable& table,
                             bool trains, const train::TensorWriter& write, const Notice& notice);

/// Returns the exporter of an image classifier: weights in PyTorch's layout and of type `precision`, BatchNorm's
/// running statistics and counts, and preprocessor_config.json.
std::unique_ptr<train::ModelExporter> image_exporter(const families::ImageModel& model, const ImageInput& input,
                                                     const ParameterTable& table, Precision precision);

}  // namespace mylos::tasks
