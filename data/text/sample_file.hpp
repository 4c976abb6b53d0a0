#pragma once

#include <filesystem>
#include <optional>

#include "data/text/samples.hpp"

/// The file of `mylos prepare` for language models: samples with their checksums, in HDF5, and what they were made
/// with. train and eval take it for the documents, so that nothing is tokenized twice.
namespace mylos::data {

/// The content of a sample file.
struct PreparedSamples {
  SampleSet set;
  SampleOptions options;
  std::optional<SentencePieceIdentity> tokenizer;  ///< empty: the documents brought their ids
};

/// Writes a sample file. It appears whole or not at all. While it is written, memory holds it beside `prepared`. Errors
/// are std::runtime_error naming the file.
void write_sample_file(const std::filesystem::path& path, const PreparedSamples& prepared);

/// Reads and checks a sample file. Throws std::runtime_error naming the file and what is wrong: not HDF5, not a sample
/// file, of another format version, cut short, a wrong checksum, contents that contradict each other.
PreparedSamples read_sample_file(const std::filesystem::path& path);

/// Whether `path` says that write_sample_file wrote it, whole or damaged; false in a build without HDF5.
bool is_sample_file(const std::filesystem::path& path);

/// Throws std::runtime_error with both values where the file was prepared with another tokenizer, length, BOS or EOS,
/// or other treatment of long documents than this run's, or for a larger vocabulary than its ids allow. Where the file
/// or the run has no tokenizer, the tokenizers are not compared.
void check_prepared_for(const PreparedSamples& prepared, const std::filesystem::path& path,
                        const std::optional<SentencePieceIdentity>& tokenizer, const SampleOptions& options);

/// Writes samples for people: JSON lines {"line": n, "input_ids": [...]}, n being where the document begins. To train
/// on that file again needs neither BOS nor EOS added. Errors as write_sample_file.
void write_sample_lines(const std::filesystem::path& path, const SampleSet& set);

}  // namespace mylos::data
