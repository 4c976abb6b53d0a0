#include "tasks/image_classification/resnet_shape_of.hpp"

namespace mylos::tasks {

families::ResnetShape resnet_shape_of(const families::ResnetConfig& config, const ImageInput& input,
                                      double label_smoothing) {
  families::ResnetShape shape;
  shape.bottleneck = config.bottleneck;
  shape.embedding = config.embedding_size;
  shape.channels = config.num_channels;
  shape.labels = config.labels.size();
  shape.height = shape.width = input.size;
  shape.hidden = config.hidden_sizes;
  shape.depths = config.depths;
  shape.downsample_in_first_stage = config.downsample_in_first_stage;
  shape.downsample_in_bottleneck = config.downsample_in_bottleneck;
  shape.stem = config.stem == families::ResnetStem::cifar ? families::ResnetShape::Stem::cifar
                                                          : families::ResnetShape::Stem::imagenet;
  shape.mean = input.mean;
  shape.deviation = input.deviation;
  shape.label_smoothing = static_cast<float>(label_smoothing);
  return shape;
}

}  // namespace mylos::tasks
