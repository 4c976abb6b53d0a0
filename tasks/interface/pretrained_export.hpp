#pragma once

#include "core/parameter_store.hpp"
#include "data/huggingface/pretrained.hpp"
#include "train/engine/task.hpp"

#include <filesystem>
#include <span>
#include <vector>

namespace mylos::tasks {

/// The export of a model whose tensors bear the names of Hugging Face's, as a directory that transformers loads. Its
/// tables have no state rows.
class PretrainedExport final : public train::ModelExport {
 public:
  /// `config` becomes config.json, and `files` (the tokenizer's) stand beside it.
  PretrainedExport(const std::filesystem::path& directory, const OrderedJson& config,
                   std::span<const data::ModelFile> files, const ParameterTable& table);

  void write(const ParameterRow&, std::size_t, std::span<const float> values) override { writer_.write(values); }
  void commit() override { writer_.commit(); }

 private:
  data::PretrainedWriter writer_;
};

}  // namespace mylos::tasks
