#pragma once

#include "core/base/notice.hpp"
#include "core/batch.hpp"
#include "data/huggingface/pretrained.hpp"
#include "data/text/samples.hpp"
#include "families/interface/text_model.hpp"
#include "tasks/language_modeling/language_config.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

/// Cuts documents into samples and makes batches of them.
namespace mylos::tasks {

/// Returns the tokenizer in a model's directory; null if it has none, which is reported to `notice` if that is set.
/// Errors: std::runtime_error naming the file if it cannot be read or has more pieces than the model's vocabulary.
std::unique_ptr<data::Tokenizer> load_tokenizer(const FileReader& files, const std::filesystem::path& directory,
                                                const Notice& notice);

/// Returns how `config` cuts documents for a model, whose configuration gives BOS and EOS.
data::SampleOptions sample_options(const LanguageConfig& config, const families::TextModel& model,
                                   const data::Tokenizer* tokenizer);

/// Reads the documents of a file and cuts them into samples, or reads a sample file of `mylos prepare`. `tokenizer` is
/// null if the model's directory has none; the documents must then contain ids. `directory` is the model's. `notice`
/// gets a line for each item skipped. Errors: std::runtime_error naming the file.
data::SampleSet load_samples(const std::filesystem::path& path, const data::Tokenizer* tokenizer,
                             const families::TextModel& model, const std::filesystem::path& directory,
                             const LanguageConfig& config, std::optional<std::size_t> limit, const Notice& notice);

/// Returns the texts of a file's documents; empty ones for documents of ids. Errors: std::runtime_error naming the
/// file.
std::vector<std::string> document_texts(const std::filesystem::path& path);

/// Returns a checksum over tokens, starts and what is supervised of all samples: equal if the same data is trained on
/// or evaluated.
std::uint32_t checksum_of(const data::SampleSet& samples);

/// Makes batches of samples. Keeps its host buffers between calls.
class SampleBatcher {
 public:
  explicit SampleBatcher(const data::SampleSet& samples) : samples_(samples) {}

  /// Packs these samples; `ids` are their positions in the global batch. The label of a row is the token that follows
  /// it, if that is supervised.
  void assemble(std::span<const std::size_t> samples, std::span<const std::uint32_t> ids, Batch& batch) const;
  /// Returns the labels of the last batch, one per row; negative if a row has none.
  std::span<const std::int32_t> labels() const { return labels_; }

 private:
  const data::SampleSet& samples_;
  mutable std::vector<std::size_t> lengths_;
  mutable std::vector<std::int32_t> tokens_, labels_;
};

}  // namespace mylos::tasks
