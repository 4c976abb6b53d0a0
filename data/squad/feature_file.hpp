#pragma once

#include <cstdint>
#include <filesystem>

#include "data/squad/features.hpp"
#include "data/squad/squad.hpp"
#include "data/tokenizer/wordpiece.hpp"

/// The feature file of `mylos prepare`: a data set with its tokens and windows, checksummed, in HDF5. train and eval
/// take it for the JSON, so that nothing is tokenised twice and every rank reads the same.
namespace mylos::data {

/// What a vocabulary's tokens and a tokenizer's switches say; two that differ cut texts differently.
struct TokenizerIdentity {
  std::size_t vocabulary_size = 0;
  std::uint32_t vocabulary_checksum = 0;  ///< CRC-32C of the tokens, each followed by a line feed
  TokenizerOptions options;
};

TokenizerIdentity identify_tokenizer(const Vocabulary& vocabulary, const TokenizerOptions& options);

/// The content of a feature file. The windows are those of all questions, as for prediction, and carry labels where
/// the file has answers; select_features makes training's of them.
struct PreparedFeatures {
  SquadDataset dataset;
  FeatureSet features;
  FeatureOptions options;
  TokenizerIdentity tokenizer;
};

/// Tokenises `dataset` and cuts it into windows; `options.training` is ignored. Errors are those of build_features.
PreparedFeatures prepare_features(SquadDataset dataset, const WordPieceTokenizer& tokenizer,
                                  const TokenizerOptions& switches, FeatureOptions options);

/// Writes a feature file. It appears whole or not at all; where the disk is full, std::runtime_error names the file.
void write_feature_file(const std::filesystem::path& path, const PreparedFeatures& prepared);

/// Reads and checks a feature file. Throws std::runtime_error naming the file and what is wrong: not HDF5, not a
/// feature file, of another format version, cut short, a wrong checksum, contents that contradict each other.
PreparedFeatures read_feature_file(const std::filesystem::path& path);

/// True where `path` begins as an HDF5 file does; false for JSON and for what cannot be read.
bool is_hdf5_file(const std::filesystem::path& path);

/// True where `path` says that write_feature_file wrote it, whole or damaged; false in a build without HDF5.
bool is_feature_file(const std::filesystem::path& path);

/// Throws std::runtime_error with both values where the file was prepared with another vocabulary, other switches,
/// another length, stride or way of labelling than this run's.
void check_prepared_for(const PreparedFeatures& prepared, const std::filesystem::path& path,
                        const TokenizerIdentity& tokenizer, const FeatureOptions& options);

/// Throws std::runtime_error, beginning with `name`, unless `set` holds the windows of each question in order, from 0:
/// answers are looked for question by question, after all predictions.
void check_window_order(const FeatureSet& set, std::string_view name);

/// The windows that build_features(dataset, tokenizer, options) would make, out of the prepared `features`; `dataset`
/// has the prepared questions, or the first of them. Errors are those of build_features.
FeatureSet select_features(const SquadDataset& dataset, FeatureSet features, const FeatureOptions& options);

}  // namespace mylos::data
