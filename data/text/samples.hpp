#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/shared_array.hpp"
#include "data/text/documents.hpp"
#include "data/tokenizer/tokenizer.hpp"

/// The samples of a language model: token sequences of documents, divided at the maximum length.
namespace mylos::data {

/// The treatment of documents that are longer than a sample.
enum class LongDocuments {
  split,     ///< continue in another sample
  truncate,  ///< drop the rest, and count its tokens
};

/// A document has the tokens [BOS] ids [EOS]. It is divided after every max_length tokens without overlap: only its
/// first sample begins with BOS, and only its last sample ends with EOS, unless that part is dropped. A document of
/// which the loss counts only a part is not divided.
struct SampleOptions {
  std::size_t max_length = 512;                      ///< tokens per sample, including BOS and EOS; at least 2
  std::optional<LongDocuments> long_documents = {};  ///< nullopt: split; truncate where only a part is supervised
  std::optional<LossOn> loss_on = {};  ///< nullopt: assistant in messages, completion after a prompt, else all
  std::optional<TokenId> begin;        ///< BOS; nullopt: none is added
  std::optional<TokenId> end;          ///< EOS; nullopt: none is added
  std::size_t vocabulary_size = 0;     ///< size of the model's embedding table, which may exceed the tokenizer's
  std::optional<std::uint32_t> chat_template = {};  ///< checksum of the model's, for conversations; nullopt: none
};

/// Counts of the documents and tokens that were read and left out.
struct SampleCounts {
  std::uint64_t documents = 0;
  std::uint64_t empty_documents = 0;       ///< without tokens, or only white space; left out
  std::uint64_t long_documents = 0;        ///< longer than a sample
  std::uint64_t tokens_left_out = 0;       ///< from truncated documents, including EOS
  std::uint64_t short_samples = 0;         ///< a single token, which predicts nothing; left out
  std::uint64_t unsupervised_samples = 0;  ///< without a supervised token after the first; left out
  bool operator==(const SampleCounts&) const = default;
};

/// All samples of a file, in file order: 4 bytes per token and 24 bytes per sample.
struct SampleSet {
  SharedArray<TokenId> ids;                 ///< all samples, one after the other
  SharedArray<std::uint64_t> starts = {0};  ///< (samples + 1)
  SharedArray<std::uint64_t> documents;     ///< (samples) index of the document, from 0, counting empty documents
  SharedArray<std::uint64_t> lines;         ///< (samples) line on which the document begins, from 1
  SampleCounts counts;
  SharedArray<std::uint8_t> supervised;        ///< (tokens) 1: the loss counts it; empty: it counts all
  std::optional<std::uint32_t> chat_template;  ///< checksum of the one that wrote the documents; nullopt: none

  std::size_t size() const { return documents.size(); }
  std::size_t length(std::size_t sample) const { return starts[sample + 1] - starts[sample]; }
  /// Returns the lengths of all samples.
  std::vector<std::size_t> lengths() const;
  std::span<const TokenId> sample(std::size_t index) const { return {ids.data() + starts[index], length(index)}; }
  /// Returns whether the loss counts a token, by its index in `ids`. No position predicts the first one of a sample.
  bool is_supervised(std::size_t token) const { return supervised.empty() || supervised[token] != 0; }
  /// Returns the number of tokens that the loss counts, in a sample and in all.
  std::uint64_t predicted(std::size_t sample) const;
  std::uint64_t predicted() const;
  /// Returns the samples [first, last) of a document; an empty range for an empty document.
  std::pair<std::size_t, std::size_t> samples_of(std::uint64_t document) const;
  bool operator==(const SampleSet&) const = default;
};
inline auto members(SampleSet& set) {
  // does not compile if one is forgotten
  auto& [ids, starts, documents, lines, counts, supervised, chat_template] = set;
  return std::tie(ids, starts, documents, lines, counts, supervised, chat_template);
}

struct ReadOptions {
  std::string text_field;            ///< for JSON lines, see JsonDocuments
  std::optional<std::size_t> limit;  ///< reads only this many documents
  bool strict = false;               ///< an empty document is an error
  std::size_t threads = 0;           ///< tokenizer threads; 0: as many as this process has processors
  std::filesystem::path model = {};  ///< the model's directory, for its chat template
  std::string chat_time = {};        ///< the time in conversations, for ChatFormat
};

/// Reads the documents of a file in one pass, tokenizes them on several threads and divides them into samples. The
/// order does not depend on the threads. Without a tokenizer the documents must contain token ids. Throws
/// std::runtime_error of one line: errors of open_documents, an id outside the vocabulary or, with `strict`, an empty
/// document (with file and line), and a file without documents or samples (with the file); SettingError for
/// long_documents = split if the loss counts only a part.
SampleSet read_samples(const std::filesystem::path& path, const Tokenizer* tokenizer, const SampleOptions& options,
                       const ReadOptions& reading);
/// Does the same for a file whose name does not tell its format.
SampleSet read_samples(const std::filesystem::path& path, DocumentFormat format, const Tokenizer* tokenizer,
                       const SampleOptions& options, const ReadOptions& reading);

/// Keeps the samples of the first `count` documents.
void limit_documents(SampleSet& set, std::uint64_t count);

/// Describes the documents and tokens that were left out or cut, one item per line: "2 of 10 documents are empty and
/// left out".
std::vector<std::string> describe_losses(const SampleSet& set, const SampleOptions& options);

}  // namespace mylos::data
