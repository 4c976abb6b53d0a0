#pragma once

#include "core/parameters.hpp"
#include "data/huggingface/pretrained.hpp"
#include "families/bert/bert_config.hpp"
#include "tasks/interface/run_config.hpp"
#include "train/engine/model_exporter.hpp"

#include <memory>

namespace mylos::tasks {

/// Returns the exporter of a model that `run` trains, starting from `model` with configuration `config`. An export has
/// the vocabulary of `model`, and the tensors of `table` in the type of export_precision(). Errors: std::runtime_error
/// naming a file of `model`.
std::unique_ptr<train::ModelExporter> bert_exporter(const RunConfig& run, const data::PretrainedModel& model,
                                                    const families::BertConfig& config, const ParameterTable& table);

}  // namespace mylos::tasks
