#include "tasks/language_modeling/llama_export.hpp"

#include "families/llama/sentencepiece_files.hpp"
#include "tasks/interface/pretrained_export.hpp"

namespace mylos::tasks {

std::unique_ptr<train::ModelExporter> llama_exporter(const RunConfig& run, const data::PretrainedModel& model,
                                                     const families::LlamaConfig& config, const ParameterTable& table) {
  return std::make_unique<PretrainedExporter>(families::llama_config_json(config),
                                              model.read_files(families::sentencepiece_files), weight_tensors(table),
                                              data::WeightFormat{.precision = export_precision(run, model)});
}

}  // namespace mylos::tasks
