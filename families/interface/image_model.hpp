#pragma once

#include "core/base/text/python_json.hpp"
#include "data/huggingface/config_reader.hpp"
#include "data/huggingface/weight_files.hpp"
#include "families/interface/image_format.hpp"
#include "nn/model.hpp"

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

/// A classifier of images as tasks see it, whatever its family.
namespace mylos::families {

/// The content of a config.json. A task may change the members before it makes the network.
class ImageModel {
 public:
  virtual ~ImageModel() = default;

  std::vector<std::string> labels;  ///< id2label, in the order of the ids
  std::size_t channels = 3;         ///< of the images
  ImageStem stem = ImageStem::imagenet;

  /// Returns its sizes: "16 bottlenecks, 3 channels, imagenet stem, 10 labels".
  virtual std::string text() const = 0;
  /// Returns the network for such images. `label_smoothing` is in [0, 1). Errors: std::invalid_argument if sizes do
  /// not fit together.
  virtual std::unique_ptr<nn::Model> network(const ImageFormat& images, float label_smoothing,
                                             Precision precision) const = 0;
  /// Returns the pixels of the smallest arrays that BatchNorm sees, for one image.
  virtual std::size_t last_pixels(const ImageFormat& images) const = 0;
  /// Returns the config.json of a model in transformers, with weights of the type `dtype`.
  virtual OrderedJson config_json(std::string_view dtype) const = 0;

  /// Returns the names of its tensors in files, by which the last layer is ignored unless `with_classifier`.
  virtual data::TensorNaming naming(bool with_classifier) const = 0;
  /// Returns whether the tensor of this name belongs to the last layer, which gives the labels.
  virtual bool is_classifier(std::string_view tensor) const = 0;
  /// Returns whether it is a state tensor that files hold as an integer.
  virtual bool is_count(std::string_view tensor) const = 0;
  /// Sets the labels and the stem to those of the weights in `directory`. Without a last layer the labels stay. Errors:
  /// those of WeightFiles.
  virtual void take_weights_shape(const FileReader& files, const std::filesystem::path& directory) = 0;
};

/// Returns the model that `config` describes. Errors: std::runtime_error with the file and the key; UsageError if its
/// family does not classify images.
std::unique_ptr<ImageModel> read_image_model(const data::ModelConfig& config);

}  // namespace mylos::families
