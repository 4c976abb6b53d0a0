#pragma once

#include "nn/head.hpp"

#include <memory>
#include <string>

/// Cross entropy over a vocabulary: logits = x W^T and softmax over V. It is computed for a chunk of rows at a time,
/// because (T, V) logits would be by far the largest array of a model.
namespace mylos::nn {

struct VocabularyHeadSettings {
  std::string weight;          ///< name of W (V, H)
  std::size_t vocabulary = 0;  ///< V
  float initializer_range = 0.02f;
  std::string lender = {};  ///< the unit that has W, such as the embeddings', if the head adds none
  std::size_t chunk = 0;    ///< R, rows per chunk of logits; 0: the largest multiple of 128, at least 128, whose logits
                            ///< fit in 128 MiB
};

/// Returns a head that predicts a token for each row, with names::labels. A sample's loss is the sum over its rows.
/// `predict` returns (T, 1), the likeliest token. dx may alias x: a chunk's rows are read before their gradient is
/// written.
template <class T>
std::unique_ptr<Head<T>> make_vocabulary_head(const VocabularyHeadSettings& settings);

}  // namespace mylos::nn
