#include "tasks/image_classification/image_export.hpp"

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
std::vector<data::TensorShape> parameters_and_state(const families::ImageModel& model, const ParameterTable& table) {
  std::vector<data::TensorShape> tensors = weight_tensors(table);
  for (const ParameterTensor& tensor : table.state_tensors()) {
    const bool is_count = model.is_count(tensor.name);
    tensors.push_back({tensor.name, is_count ? std::vector<std::size_t>() : tensor.shape, is_count});
  }
  return tensors;
}

}  // namespace

std::unique_ptr<train::ModelExporter> image_exporter(const families::ImageModel& model, const ImageInput& input,
                                                     const ParameterTable& table, Precision precision) {
  return std::make_unique<PretrainedExporter>(model.config_json(torch_dtype(precision)), processor_file(input),
                                              parameters_and_state(model, table),
                                              data::WeightFormat{.precision = precision});
}

}  // namespace mylos::tasks
