#pragma once

#include "core/parameters.hpp"
#include "data/huggingface/channels_last.hpp"
#include "data/huggingface/pretrained.hpp"
#include "data/huggingface/resnet_config.hpp"
#include "tasks/image_classification/image_input.hpp"
#include "train/engine/task.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace mylos::tasks {

/// Returns the tensors of an export, parameters and state, as weight files have them.
std::vector<data::TensorShape> image_weight_tensors(const ParameterTable& table);

/// Exports an image classifier as a directory that transformers can load: weights in PyTorch's layout, BatchNorm's
/// running statistics and counts, and preprocessor_config.json.
class ImageExport final : public train::ModelExport {
 public:
  ImageExport(const std::filesystem::path& directory, const data::ResnetConfig& config, const ImageInput& input,
              const ParameterTable& table, const data::WeightFormat& format, const train::ExportPart& part = {});

  void write(const ParameterTensor& tensor, std::size_t first, std::span<const float> values) override;
  std::filesystem::path staged() const override { return writer_.staged(); }
  void finish() override { writer_.finish(); }
  void commit() override { writer_.commit(); }

 private:
  data::PretrainedWriter writer_;
  std::optional<data::ChannelsFirst> convolution_;  ///< permutation of the convolution being written
};

}  // namespace mylos::tasks
