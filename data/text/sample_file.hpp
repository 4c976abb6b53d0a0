#pragma once

#include <filesystem>
#include <optional>

#include "data/text/samples.hpp"

/// The sample file of `mylos prepare` for language models: samples with checksums in HDF5, and the options used to
/// create them. train and eval accept it instead of the documents, so that several runs tokenize the text once.
namespace mylos::data {

/// The content of a sample file.
struct PreparedSamples {
  SampleSet set;
  SampleOptions options;
  std::optional<TokenizerIdentity> tokenizer;  ///< nullopt if the documents contained token ids
};

/// Writes a sample file, which appears complete or not at all. Needs memory for a second copy of the content. Throws
/// std::runtime_error with the file.
void write_sample_file(const std::filesystem::path& path, const PreparedSamples& prepared);

/// Reads and checks a sample file. Throws std::runtime_error with the file and the problem: not HDF5, not a sample
/// file, another format version, truncated, a wrong checksum, or inconsistent contents.
PreparedSamples read_sample_file(const std::filesystem::path& path);

/// True if `path` was written by write_sample_file, complete or damaged.
bool is_sample_file(const std::filesystem::path& path);

/// Throws std::runtime_error with both values if the file was prepared with a tokenizer, chat template, length, BOS,
/// EOS or treatment of long documents that differs from this run's, or for a vocabulary too large for this run. The
/// tokenizers are not compared if the file or the run has none, nor the templates if the file has none.
void check_prepared_for(const PreparedSamples& prepared, const std::filesystem::path& path,
                        const std::optional<TokenizerIdentity>& tokenizer, const SampleOptions& options);

/// Writes samples in readable form, as JSON lines {"line": n, "input_ids": [...]}, with "labels" unless all tokens are
/// supervised; n is the line on which the document begins. Training on that file needs no additional BOS or EOS. Errors
/// as for write_sample_file.
void write_sample_lines(const std::filesystem::path& path, const SampleSet& set);

}  // namespace mylos::data
