#pragma once

#include "core/base/notice.hpp"
#include "core/batch.hpp"
#include "data/huggingface/llama_config.hpp"
#include "data/huggingface/pretrained.hpp"
#include "data/text/samples.hpp"
#include "tasks/language_modeling/language_config.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

/// Documents cut into samples, as batches.
namespace mylos::tasks {

/// The tokenizer in a model's directory; empty where it has none, which `notice` is told where it is set. Errors:
/// std::runtime_error naming the file where it cannot be read or has more pieces than the model has rows.
std::optional<data::SentencePieceTokenizer> load_tokenizer(const std::filesystem::path& directory,
                                                           const data::LlamaConfig& model, const Notice& notice = {});

/// The same. Errors: std::runtime_error also where it has none: what is missing.
data::SentencePieceTokenizer require_tokenizer(const std::filesystem::path& directory, const data::LlamaConfig& model);

/// The files that a written model needs to be used as the one in `model`.
std::vector<data::ModelFile> read_tokenizer_files(const data::PretrainedModel& model);

/// How `config` cuts documents for a model, whose configuration says its BOS and EOS.
data::SampleOptions sample_options(const LanguageConfig& config, const data::LlamaConfig& model);

/// Reads the documents of a file and cuts them into samples, or takes a sample file of `mylos prepare`. `tokenizer` is
/// null where the model's directory has none: the documents then bring their ids. `notice` gets a line on whatever was
/// left out. Errors: std::runtime_error naming the file.
data::SampleSet load_samples(const std::filesystem::path& path, const data::SentencePieceTokenizer* tokenizer,
                             const data::LlamaConfig& model, const LanguageConfig& config,
                             std::optional<std::size_t> limit, const Notice& notice);

/// Of all samples' tokens and where they begin: equal where the same is trained on or evaluated.
std::uint32_t checksum_of(const data::SampleSet& samples);

/// Makes batches out of samples; keeps the host memory it packs them in.
class SampleBatcher {
 public:
  explicit SampleBatcher(const data::SampleSet& samples) : samples_(samples) {}

  /// Packs these samples; ids are their places in the global batch. A row's label is the token that follows it.
  void assemble(std::span<const std::size_t> samples, std::span<const std::uint32_t> ids, Batch& batch) const;
  /// The labels of the last batch, one for each row; negative where there is none.
  std::span<const std::int32_t> labels() const { return labels_; }

 private:
  const data::SampleSet& samples_;
  mutable std::vector<std::size_t> lengths_;
  mutable std::vector<std::int32_t> tokens_, positions_, labels_;
};

}  // namespace mylos::tasks
