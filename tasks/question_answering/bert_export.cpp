#include "tasks/question_answering/bert_export.hpp"

#include "families/bert/wordpiece_files.hpp"
#include "tasks/interface/pretrained_export.hpp"

namespace mylos::tasks {

std::unique_ptr<train::ModelExporter> bert_exporter(const RunConfig& run, const data::PretrainedModel& model,
                                                    const families::BertConfig& config, const ParameterTable& table) {
  auto files = families::wordpiece_model_files(families::read_wordpiece_files(model.directory()),
                                               config.max_position_embeddings);
  return std::make_unique<PretrainedExporter>(families::bert_config_json(config), std::move(files),
                                              weight_tensors(table),
                                              data::WeightFormat{.precision = export_precision(run, model)});
}

}  // namespace mylos::tasks
