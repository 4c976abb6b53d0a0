#include "tasks/interface/pretrained_export.hpp"

#include "core/base/error.hpp"
#include "data/huggingface/channels_last.hpp"
#include "families/model_families.hpp"

#include <fmt/format.h>

#include <optional>
#include <span>
#include <utility>

namespace mylos::tasks {
namespace {

bool is_convolution(const ParameterTensor& tensor) { return tensor.shape.size() == 4; }

class PretrainedExport final : public train::ModelExport {
 public:
  PretrainedExport(const std::filesystem::path& directory, const OrderedJson& config,
                   std::span<const data::ModelFile> files, std::span<const data::TensorShape> weights,
                   const data::WeightFormat& format, const train::ExportPart& part)
      : writer_(directory, config, files, weights, format, data::WriterPart{part.writer, part.writers}, part.staged) {}

  void write(const ParameterTensor& tensor, std::size_t first, std::span<const float> values) override {
    if (!is_convolution(tensor)) return writer_.write(values);
    if (first == 0) convolution_.emplace(data::channels_last_sizes(tensor.shape));
    convolution_->write(values, [this](std::span<const float> channel) { writer_.write(channel); });
  }
  std::filesystem::path staged() const override { return writer_.staged(); }
  void finish() override { writer_.finish(); }
  void commit() override { writer_.commit(); }

 private:
  data::PretrainedWriter writer_;
  std::optional<data::ChannelsFirst> convolution_;  ///< permutation of the convolution being written
};

}  // namespace

Precision export_precision(const FileReader& files, const RunConfig& run, const data::PretrainedModel& model) {
  if (run.task.export_precision) return *run.task.export_precision;
  if (run.engine.precision == Precision::float32 || !model.has_weights(files)) return Precision::float32;
  return model.weights_precision(files);
}

std::string_view torch_dtype(Precision precision) {
  switch (precision) {
    case Precision::float32:
      return "float32";
    case Precision::bfloat16:
      return "bfloat16";
    case Precision::float16:
      return "float16";
  }
  fail("unknown precision");
}

std::vector<data::TensorShape> weight_tensors(const ParameterTable& table) {
  std::vector<data::TensorShape> tensors;
  for (const ParameterTensor& tensor : table.tensors()) {
    tensors.push_back({tensor.name, tensor.shape});
    if (!is_convolution(tensor)) continue;
    const data::ConvolutionSizes sizes = data::channels_last_sizes(tensor.shape);
    tensors.back().shape = {sizes.out, sizes.in, sizes.height, sizes.width};
  }
  return tensors;
}

std::unique_ptr<PretrainedExporter> pretrained_exporter(const FileReader& files, const RunConfig& run,
                                                        const data::PretrainedModel& model, std::string_view head) {
  const data::ModelFamily& family = families::find_model_family(files, model.directory());
  auto exporter = std::make_unique<PretrainedExporter>(
      family.config_json(model), family.tokenizer_files(files, model), std::vector<data::TensorShape>(),
      data::WeightFormat{.precision = export_precision(files, run, model)});
  exporter->set("architectures", {fmt::format("{}{}", family.architecture, head)});
  return exporter;
}

PretrainedExporter::PretrainedExporter(OrderedJson config, std::vector<data::ModelFile> files,
                                       std::vector<data::TensorShape> weights, const data::WeightFormat& format)
    : config_(std::move(config)), files_(std::move(files)), weights_(std::move(weights)), format_(format) {
  config_["torch_dtype"] = torch_dtype(format.precision);
}

std::vector<std::size_t> PretrainedExporter::files() const { return data::divide_into_shards(weights_, format_); }

std::unique_ptr<train::ModelExport> PretrainedExporter::start(const std::filesystem::path& directory,
                                                              const train::ExportPart& part) const {
  return std::make_unique<PretrainedExport>(directory, config_, files_, weights_, format_, part);
}

}  // namespace mylos::tasks
