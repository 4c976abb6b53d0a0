#include "tasks/image_classification/classifier_model.hpp"

#include "core/base/error.hpp"
#include "data/huggingface/channels_last.hpp"
#include "data/huggingface/weight_files.hpp"
#include "families/model_families.hpp"
#include "tasks/interface/pretrained_export.hpp"

#include <fmt/format.h>

#include <array>
#include <system_error>
#include <vector>

namespace mylos::tasks {
namespace {

/// A tensor as stored in the files, and its permutation if it belongs to a convolution.
struct WantedTensor {
  data::TensorSpec spec;
  std::optional<data::ConvolutionSizes> convolution;
};

WantedTensor parameter_tensor(const ParameterTensor& row, bool is_optional) {
  WantedTensor wanted{.spec = {row.name, row.shape, is_optional}, .convolution = {}};
  if (row.shape.size() == 4) {
    const data::ConvolutionSizes sizes = data::channels_last_sizes(row.shape);
    wanted.spec.shape = {sizes.out, sizes.in, sizes.height, sizes.width};
    wanted.convolution = sizes;
  }
  return wanted;
}

/// Old files lack the count of batches.
WantedTensor state_row(const ClassifierModel& model, const ParameterTensor& row) {
  if (model.images->is_count(row.name)) return {{row.name, {}, true, true}, {}};
  return {{row.name, row.shape}, {}};
}

std::vector<WantedTensor> wanted_rows(const ClassifierModel& model, const ParameterTable& table, bool trains) {
  std::vector<WantedTensor> wanted;
  for (const ParameterTensor& row : table.tensors()) {
    const bool is_head = model.images->is_classifier(row.name);
    if (!is_head || !model.new_classifier) wanted.push_back(parameter_tensor(row, is_head && trains));
  }
  for (const ParameterTensor& row : table.state_tensors()) wanted.push_back(state_row(model, row));
  return wanted;
}

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

ClassifierModel read_classifier(const FileReader& files, const std::filesystem::path& model,
                                const std::filesystem::path& weights) {
  std::error_code unreadable;  // counts as a name
  ClassifierModel read{.name = model.string(), .images = {}, .pretrained = {}, .processor = {}};
  const data::KnownModel* known = families::find_known_model(read.name, families::BodyOutput::images);
  if (known != nullptr && known->name == read.name) {
    read.images = families::read_image_model(*known);
    if (weights.empty()) return read;
    ensure(!data::is_pickle(weights), fmt::format("--weights {}: a Python pickle; convert it once, in its directory, "
                                                  "which is then --weights: {}",
                                                  weights.string(), data::convert_command(weights)));
    ensure(std::filesystem::is_directory(weights, unreadable),
           fmt::format("--weights {}: there is no such directory", weights.string()));
    read.images->take_weights_shape(files, weights);
    read.pretrained.emplace(weights, read.images->config_json("float32"));
    return read;
  }
  ensure(weights.empty(), fmt::format("--weights {}: --model {} is a directory, which holds its own weights; leave it "
                                      "out, or give the model by name: resnet50",
                                      weights.string(), read.name));
  read.pretrained.emplace(files, model);
  read.images = families::read_image_model(*read.pretrained);
  read.processor = data::read_image_processor(files, model);
  return read;
}

void choose_stem(const FileReader& files, ClassifierModel& model, std::optional<families::ImageStem> stem) {
  if (!stem || *stem == model.images->stem) return;
  ensure(!model.has_weights(files),
         fmt::format("--stem {}: the weights in {} have the stem {}; leave it out", to_string(*stem),
                     model.pretrained->directory().string(), to_string(model.images->stem)));
  model.images->stem = *stem;
}

families::ImageFormat format_of(const ImageInput& input) {
  return {.height = input.size, .width = input.size, .mean = input.mean, .deviation = input.deviation};
}

std::unique_ptr<nn::Model> make_network(const ClassifierModel& model, const ImageInput& input, Precision precision,
                                        double label_smoothing) {
  return model.images->network(format_of(input), static_cast<float>(label_smoothing), precision);
}

Precision classifier_precision(const FileReader& files, const RunConfig& run, const ClassifierModel& model) {
  return model.pretrained ? export_precision(files, run, *model.pretrained)
                          : run.task.export_precision.value_or(Precision::float32);
}

void read_classifier_weights(const FileReader& files, const ClassifierModel& model, const ParameterTable& table,
                             bool trains, const train::TensorWriter& write, const Notice& notice) {
  const std::vector<WantedTensor> wanted = wanted_rows(model, table, trains);
  std::vector<data::TensorSpec> specs;
  for (const WantedTensor& row : wanted) specs.push_back(row.spec);
  const data::WeightReport report = model.pretrained->read_weights(
      files, specs, model.images->naming(!model.new_classifier), [&](std::size_t row, const data::TensorReader& read) {
        const auto& convolution = wanted[row].convolution;
        write(specs[row].name, convolution ? data::read_channels_last(read, *convolution) : read);
      });
  bool lacks_classifier = false;
  for (const std::string& name : report.missing) {
    constexpr std::array zero{0.0f};
    if (model.images->is_count(name)) write(name, zero);
    lacks_classifier = lacks_classifier || model.images->is_classifier(name);
  }
  if (model.new_classifier) {
    notice(fmt::format("{}: its last layer has other labels, and is initialised anew with --seed", model.name));
  } else if (lacks_classifier) {
    notice(fmt::format("{} has no last layer (classifier.1): it is initialised with --seed", model.name));
  }
}

std::unique_ptr<train::ModelExporter> image_exporter(const families::ImageModel& model, const ImageInput& input,
                                                     const ParameterTable& table, Precision precision) {
  return std::make_unique<PretrainedExporter>(model.config_json(torch_dtype(precision)), processor_file(input),
                                              parameters_and_state(model, table),
                                              data::WeightFormat{.precision = precision});
}

}  // namespace mylos::tasks
