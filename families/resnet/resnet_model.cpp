#include "families/resnet/resnet_model.hpp"

#include "core/base/error.hpp"
#include "core/base/text/quantities.hpp"
#include "core/element_type.hpp"
#include "families/resnet/resnet_body.hpp"
#include "families/resnet/resnet_config.hpp"
#include "nn/heads/linear_heads.hpp"
#include "nn/network.hpp"

#include <fmt/format.h>

#include <cmath>
#include <numeric>
#include <utility>

namespace mylos::families {
namespace {

class ResnetModel final : public ImageModel {
 public:
  explicit ResnetModel(ResnetConfig config) : shape_(std::move(config.shape)) {
    labels = std::move(config.labels);
    channels = shape_.channels;
    stem = shape_.stem;
  }

  std::string text() const override {
    const std::size_t blocks = std::accumulate(shape_.depths.begin(), shape_.depths.end(), std::size_t{0});
    return fmt::format("{} {}, {}, {} stem, {}", count_text(blocks), shape_.bottleneck ? "bottlenecks" : "basic blocks",
                       count_of(channels, "channel"), to_string(stem), count_of(labels.size(), "label"));
  }
  std::unique_ptr<nn::Model> network(const ImageFormat& images, float label_smoothing,
                                     Precision precision) const override {
    return make_resnet(shape_for(images), {labels.size(), label_smoothing}, precision);
  }
  std::size_t last_pixels(const ImageFormat& images) const override {
    return resnet_stages(shape_for(images)).back().back().last().out_pixels();
  }
  OrderedJson config_json(std::string_view dtype) const override { return resnet_config_json(config(), dtype); }
  data::TensorNaming naming(bool with_classifier) const override { return resnet_tensor_naming(with_classifier); }
  bool is_classifier(std::string_view tensor) const override { return is_resnet_classifier(tensor); }
  bool is_count(std::string_view tensor) const override { return is_batch_count(tensor); }
  void take_weights_shape(const FileReader& files, const std::filesystem::path& directory) override {
    ResnetConfig config = this->config();
    families::take_weights_shape(files, directory, config);
    labels = std::move(config.labels);
    stem = config.shape.stem;
  }

 private:
  /// Returns the configuration with what the task has changed.
  ResnetConfig config() const {
    ResnetConfig config{shape_, labels};
    config.shape.channels = channels;
    config.shape.stem = stem;
    return config;
  }
  ResnetShape shape_for(const ImageFormat& images) const {
    ResnetShape shape = config().shape;
    static_cast<ImageFormat&>(shape) = images;
    return shape;
  }

  ResnetShape shape_;
};

}  // namespace

std::unique_ptr<ImageModel> resnet_model(const data::ModelConfig& config) {
  return std::make_unique<ResnetModel>(read_resnet_config(config));
}

std::unique_ptr<nn::Model> make_resnet(const ResnetShape& shape, const ResnetHead& head, Precision precision) {
  require(head.labels > 0, "ResNet: 0 labels");
  require(head.label_smoothing >= 0.0f && head.label_smoothing < 1.0f,
          fmt::format("ResNet: label smoothing {} is not in [0, 1)", head.label_smoothing));
  return with_type(precision, [&]<class T>(T) {
    auto body = make_resnet_body<T>(shape);
    const float range = 1.0f / std::sqrt(static_cast<float>(body->width()));
    return nn::make_network<T>(std::move(body),
                               nn::make_class_head<T>("classifier.1", head.labels, range, head.label_smoothing));
  });
}

}  // namespace mylos::families
