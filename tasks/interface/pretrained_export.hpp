#pragma once

#include "core/parameter_store.hpp"
#include "data/huggingface/pretrained.hpp"
#include "tasks/interface/run_config.hpp"
#include "train/engine/task.hpp"

#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

namespace mylos::tasks {

/// Returns the type in which a run writes its model's weights: the configured type; else float if the run computes in
/// float; else the type of the weights in `model`, from which the run started; float if it has none. Errors: those of
/// data::WeightFiles.
Precision export_precision(const RunConfig& run, const data::PretrainedModel& model);

/// Returns the name of a weight type in config.json: "bfloat16".
std::string_view torch_dtype(Precision precision);

/// Returns the tensors of `table` as weight files have them.
std::vector<data::TensorShape> weight_tensors(const ParameterTable& table);

/// Returns `part` for the writers of weight files.
data::WriterPart writer_part(const train::ExportPart& part);

/// Exports a model whose tensors have Hugging Face's names, as a directory that transformers can load. Its tables have
/// no state tensors.
class PretrainedExport final : public train::ModelExport {
 public:
  /// Writes `config` to config.json, with the type of the weights as torch_dtype, and `files` (the tokenizer's) next to
  /// it.
  PretrainedExport(const std::filesystem::path& directory, OrderedJson config, std::span<const data::ModelFile> files,
                   const ParameterTable& table, const data::WeightFormat& format, const train::ExportPart& part = {});

  void write(const ParameterTensor&, std::size_t, std::span<const float> values) override { writer_.write(values); }
  std::filesystem::path staged() const override { return writer_.staged(); }
  void finish() override { writer_.finish(); }
  void commit() override { writer_.commit(); }

 private:
  data::PretrainedWriter writer_;
};

}  // namespace mylos::tasks
