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

/// The type in which a run writes its model's weights: what it was told, else float where it computes in float, else
/// that of the weights in `model`, from which it began; float where that has none. Errors as of data::WeightFiles.
Precision export_precision(const RunConfig& run, const data::PretrainedModel& model);

/// What a config.json calls a type of weights: "bfloat16".
std::string_view torch_dtype(Precision precision);

/// The export of a model whose tensors bear the names of Hugging Face's, as a directory that transformers loads. Its
/// tables have no state tensors.
class PretrainedExport final : public train::ModelExport {
 public:
  /// `config` becomes config.json, with the weights' type as its torch_dtype, and `files` (the tokenizer's) stand
  /// beside it.
  PretrainedExport(const std::filesystem::path& directory, OrderedJson config, std::span<const data::ModelFile> files,
                   const ParameterTable& table, const data::WeightFormat& format);

  void write(const ParameterTensor&, std::size_t, std::span<const float> values) override { writer_.write(values); }
  void commit() override { writer_.commit(); }

 private:
  data::PretrainedWriter writer_;
};

}  // namespace mylos::tasks
