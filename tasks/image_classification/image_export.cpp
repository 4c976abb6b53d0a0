#include "tasks/image_classification/image_export.hpp"

#include "data/huggingface/resnet_tensors.hpp"
#include "tasks/interface/pretrained_export.hpp"

namespace mylos::tasks {
namespace {

std::vector<data::ModelFile> processor_file(const ImageInput& input) {
  const data::ImageProcessor processor{.mean = input.mean,
                                       .deviation = input.deviation,
                                       .size = input.size,
                                       .crop_fraction = input.crop_fraction,
                                       .warps = input.warps,
                                       .is_bicubic = input.resampling == data::Resampling::bicubic};
  return {{data::image_processor_file, data::model_json_text(data::image_processor_json(processor))}};
}

}  // namespace

std::vector<data::TensorShape> image_weight_tensors(const ParameterTable& table) {
  std::vector<data::TensorShape> tensors;
  for (const ParameterTensor& tensor : table.tensors()) {
    tensors.push_back({tensor.name, tensor.shape});
    if (tensor.shape.size() != 4) continue;
    const data::ConvolutionSizes sizes = data::channels_last_sizes(tensor.shape);
    tensors.back().shape = {sizes.out, sizes.in, sizes.height, sizes.width};
  }
  for (const ParameterTensor& tensor : table.state_tensors()) {
    const bool is_count = data::is_batch_count(tensor.name);
    tensors.push_back({tensor.name, is_count ? std::vector<std::size_t>() : tensor.shape, is_count});
  }
  return tensors;
}

ImageExport::ImageExport(const std::filesystem::path& directory, const data::ResnetConfig& config,
                         const ImageInput& input, const ParameterTable& table, const data::WeightFormat& format,
                         const train::ExportPart& part)
    : writer_(directory, data::resnet_config_json(config, torch_dtype(format.precision)), processor_file(input),
              image_weight_tensors(table), format, writer_part(part), part.staged) {}

void ImageExport::write(const ParameterTensor& tensor, std::size_t first, std::span<const float> values) {
  if (tensor.shape.size() != 4) return writer_.write(values);
  if (first == 0) convolution_.emplace(data::channels_last_sizes(tensor.shape));
  convolution_->write(values, [this](std::span<const float> channel) { writer_.write(channel); });
}

}  // namespace mylos::tasks
