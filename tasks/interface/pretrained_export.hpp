#pragma once

#include "core/parameters.hpp"
#include "data/huggingface/pretrained.hpp"
#include "tasks/interface/run_config.hpp"
#include "train/engine/model_exporter.hpp"

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mylos::tasks {

/// Returns the type in which a run writes its model's weights: the configured type; else float if the run computes in
/// float; else the type of the weights in `model`, from which the run started; float if it has none. Errors: those of
/// data::WeightFiles.
Precision export_precision(const FileReader& files, const RunConfig& run, const data::PretrainedModel& model);

/// Returns the name of a weight type in config.json: "bfloat16".
std::string_view torch_dtype(Precision precision);

/// Returns the parameter tensors of `table` as weight files have them: convolutions in PyTorch's layout.
std::vector<data::TensorShape> weight_tensors(const ParameterTable& table);

/// Exports a model whose tensors have Hugging Face's names, as a directory that transformers can load.
class PretrainedExporter final : public train::ModelExporter {
 public:
  /// Writes `config` to config.json, with the type of the weights as torch_dtype, and `files` (of the tokenizer or the
  /// image processor) next to it. `weights` are the tensors that are exported, in order, as weight files have them.
  PretrainedExporter(OrderedJson config, std::vector<data::ModelFile> files, std::vector<data::TensorShape> weights,
                     const data::WeightFormat& format);

  /// Sets a value of config.json.
  void set(const std::string& key, OrderedJson value) { config_[key] = std::move(value); }
  /// Exports the parameter tensors of `table` from now on.
  void take_tensors(const ParameterTable& table) { weights_ = weight_tensors(table); }

  std::vector<std::size_t> files() const override;
  std::unique_ptr<train::ModelExport> start(const std::filesystem::path& directory,
                                            const train::ExportPart& part) const override;

 private:
  OrderedJson config_;
  std::vector<data::ModelFile> files_;
  std::vector<data::TensorShape> weights_;
  data::WeightFormat format_;
};

/// Returns the exporter of a run's model, before it has taken the model's tensors. The model's family writes
/// config.json and the tokenizer's files (data::ModelFamily). `head` ends the class in transformers:
/// "ForQuestionAnswering".
std::unique_ptr<PretrainedExporter> pretrained_exporter(const FileReader& files, const RunConfig& run,
                                                        const data::PretrainedModel& model, std::string_view head);

}  // namespace mylos::tasks
