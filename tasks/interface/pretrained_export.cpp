#include "tasks/interface/pretrained_export.hpp"

#include "core/base/error.hpp"

#include <utility>

namespace mylos::tasks {
namespace {

OrderedJson with_dtype(OrderedJson config, Precision precision) {
  config["torch_dtype"] = torch_dtype(precision);
  return config;
}

}  // namespace

Precision export_precision(const RunConfig& run, const data::PretrainedModel& model) {
  if (run.task.export_precision) return *run.task.export_precision;
  if (run.engine.precision == Precision::float32 || !model.has_weights()) return Precision::float32;
  return model.weights_precision();
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
  for (const ParameterTensor& tensor : table.tensors()) tensors.push_back({tensor.name, tensor.shape});
  return tensors;
}

data::WriterPart writer_part(const train::ExportPart& part) { return {part.writer, part.writers}; }

PretrainedExport::PretrainedExport(const std::filesystem::path& directory, OrderedJson config,
                                   std::span<const data::ModelFile> files, const ParameterTable& table,
                                   const data::WeightFormat& format, const train::ExportPart& part)
    : writer_(directory, with_dtype(std::move(config), format.precision), files, weight_tensors(table), format,
              writer_part(part), part.staged) {}

}  // namespace mylos::tasks
