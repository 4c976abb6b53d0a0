#pragma once

#include <cstdint>
#include <filesystem>

#include "data/squad/features.hpp"
#include "data/squad/squad.hpp"
#include "data/tokenizer/tokenizer.hpp"

/// The feature file of `mylos prepare`: a data set with its tokens and windows in HDF5, with checksums. train and eval
/// accept it instead of the JSON file, so that several runs tokenize the text once.
namespace mylos::data {

/// The content of a feature file. It contains the windows of all questions, as for prediction, with labels if the file
/// has answers; select_features derives the training windows from them.
struct PreparedFeatures {
  SquadDataset dataset;
  FeatureSet features;
  FeatureOptions options;
  TokenizerIdentity tokenizer;
};

/// Tokenizes `dataset` and divides it into windows. `options.training` is ignored. Errors as for build_features.
PreparedFeatures prepare_features(SquadDataset dataset, const Tokenizer& tokenizer, FeatureOptions options);

/// Writes a feature file, which appears complete or not at all. Throws std::runtime_error with the file, for example if
/// the disk is full.
void write_feature_file(const std::filesystem::path& path, const PreparedFeatures& prepared);

/// Reads and checks a feature file. Throws std::runtime_error with the file and the problem: not HDF5, not a feature
/// file, another format version, truncated, a wrong checksum, or inconsistent contents.
PreparedFeatures read_feature_file(const std::filesystem::path& path);

/// True if `path` was written by write_feature_file, complete or damaged.
bool is_feature_file(const std::filesystem::path& path);

/// Throws std::runtime_error with both values if the file was prepared with a tokenizer, length, stride or
/// labelling rule that differs from this run's.
void check_prepared_for(const PreparedFeatures& prepared, const std::filesystem::path& path,
                        const TokenizerIdentity& tokenizer, const FeatureOptions& options);

/// Throws std::runtime_error, beginning with `name`, unless `set` holds the windows of each question in order, from 0.
/// The answers are computed question by question, after all predictions.
void check_window_order(const FeatureSet& set, std::string_view name);

/// Selects the windows that build_features(dataset, tokenizer, options) would create from the prepared `features`.
/// `dataset` has the prepared questions, or the first of them. Errors as for build_features.
FeatureSet select_features(const SquadDataset& dataset, FeatureSet features, const FeatureOptions& options);

}  // namespace mylos::data
