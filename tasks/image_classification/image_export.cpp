#include "tasks/image_classification/image_export.hpp"

#include "families/resnet/resnet_tensors.hpp"
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

/// Returns the tensors of an export, parameters and state, as weight files have them.
std::vector<data::TensorShape> parameters_and_state(const ParameterTable& table) {
  std::vector<data::TensorShape> tensors = weight_tensors(table);
  for (const ParameterTensor& tensor : table.state_tensors()) {
    const bool is_count = families::is_batch_count(tensor.name);
    tensors.push_back({tensor.name, is_count ? std::vector<std::size_t>() : tensor.shape, is_count});
  }
  return tensors;
}

}  // namespace

std::unique_ptr<train::ModelExporter> image_exporter(const families::ResnetConfig& config, const ImageInput& input,
                                                     const ParameterTable& table, Precision precision) {
  return std::make_unique<PretrainedExporter>(families::resnet_config_json(config, torch_dtype(precision)),
                                              processor_file(input), parameters_and_state(table),
                                              data::WeightFormat{.precision = precision});
}

}  // namespace mylos::tasks
