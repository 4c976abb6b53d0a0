#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "data/text/documents.hpp"
#include "data/tokenizer/sentencepiece.hpp"

/// Samples of a language model: the tokens of documents, cut to the longest length.
namespace mylos::data {

/// What becomes of a document that is longer than a sample.
enum class LongDocuments {
  split,     ///< it continues as another sample
  truncate,  ///< what is left of it is left out, and counted
};

/// A document's tokens are [BOS] ids [EOS]. A longer document than max_length is cut after each max_length of them and
/// nothing is repeated: only the first sample begins with BOS and only the last one, if it is not left out, ends with
/// EOS.
struct SampleOptions {
  std::size_t max_length = 512;  ///< tokens of a sample, BOS and EOS included; at least 2
  LongDocuments long_documents = LongDocuments::split;
  std::optional<TokenId> begin;     ///< BOS; empty: none is added
  std::optional<TokenId> end;       ///< EOS; empty: none is added
  std::size_t vocabulary_size = 0;  ///< the model's, which may have more rows than the tokenizer has pieces
};

/// What was found and what was left out.
struct SampleCounts {
  std::uint64_t documents = 0;
  std::uint64_t empty_documents = 0;  ///< without a token, or nothing but white space: left out
  std::uint64_t long_documents = 0;   ///< longer than a sample
  std::uint64_t tokens_left_out = 0;  ///< of truncated documents, EOS included
  std::uint64_t short_samples = 0;    ///< a single token, which predicts nothing: left out
  bool operator==(const SampleCounts&) const = default;
};

/// All samples of a file, in its order; 4 bytes a token and 24 bytes a sample.
struct SampleSet {
  std::vector<TokenId> ids;                 ///< of all samples, one after the other
  std::vector<std::uint64_t> starts = {0};  ///< (samples + 1)
  std::vector<std::uint64_t> documents;     ///< (samples) which document it is of, from 0; empty documents count too
  std::vector<std::uint64_t> lines;         ///< (samples) where that document begins in the file, from 1
  SampleCounts counts;

  std::size_t size() const { return documents.size(); }
  std::size_t length(std::size_t sample) const { return starts[sample + 1] - starts[sample]; }
  /// Of all samples.
  std::vector<std::size_t> lengths() const;
  std::span<const TokenId> sample(std::size_t index) const { return {ids.data() + starts[index], length(index)}; }
  /// Tokens that are predicted: all but each sample's first.
  std::uint64_t predicted() const { return ids.size() - size(); }
  /// The samples [first, last) of a document; none of an empty one.
  std::pair<std::size_t, std::size_t> samples_of(std::uint64_t document) const;
  bool operator==(const SampleSet&) const = default;
};

struct ReadOptions {
  std::string text_field;            ///< of JSON lines, see JsonDocuments
  std::optional<std::size_t> limit;  ///< takes the first documents only
  bool strict = false;               ///< an empty document is an error
  std::size_t threads = 0;           ///< to tokenize; 0: as many as this process has processors
};

/// Reads the documents of a file in one pass, tokenizes them on several threads and cuts them into samples, whose order
/// does not depend on the threads. Without a tokenizer the documents must bring their ids. Throws std::runtime_error of
/// one line: those of open_documents, an id outside the vocabulary and an empty document where `strict` (with file and
/// line), and a file without any document or without a sample (with the file).
SampleSet read_samples(const std::filesystem::path& path, const SentencePieceTokenizer* tokenizer,
                       const SampleOptions& options, const ReadOptions& reading);
/// The same for a file whose name does not say its format.
SampleSet read_samples(const std::filesystem::path& path, DocumentFormat format,
                       const SentencePieceTokenizer* tokenizer, const SampleOptions& options,
                       const ReadOptions& reading);

/// Keeps the samples of the first `count` documents.
void limit_documents(SampleSet& set, std::uint64_t count);

/// What was left out or cut, a line for each, for people: "2 of 10 documents are empty and left out".
std::vector<std::string> describe_losses(const SampleSet& set, const SampleOptions& options);

}  // namespace mylos::data
