#pragma once

#include "nn/model.hpp"

#include <functional>
#include <string>

/// Cross entropy over a vocabulary: logits = x W^T and softmax over V. It is computed for a chunk of rows at a time,
/// because (T, V) logits would be by far the largest array of a model.
namespace mylos::nn {

/// The output layer: a tensor W (V, H). It may be the token embeddings; the head's unit then borrows theirs.
struct VocabularyHead {
  std::size_t weight = 0;
  std::size_t vocabulary = 0;  ///< V
  std::size_t chunk = 0;       ///< R, rows per chunk of logits
};

/// Looks up the tensor `weight`. R is the largest multiple of 128 rows whose logits fit in 128 MiB, and at least 128.
/// Errors: std::invalid_argument if the tensor is not a matrix.
VocabularyHead find_vocabulary_head(const ParameterTable& table, const std::string& weight);

template <class T>
struct VocabularyWorkspace {
  Vector<float> row_losses;  ///< (T)
  Matrix<float> logits;      ///< (R, V)
  Matrix<T> dlogits;         ///< (R, V); empty in prediction
};
template <class T>
VocabularyWorkspace<T> take_vocabulary_workspace(Arena& arena, const VocabularyHead& head, std::size_t rows,
                                                 ParameterStore::Purpose purpose);

/// Runs forward and backward from x (T, H) and labels (T). Negative labels are ignored. losses (S) = the sum over each
/// sample's rows, dx (T, H) = scale * pass.loss_scale * gradient of their sum, dW += the same factor * gradient of the
/// same sum. dx may alias x: a chunk's rows are read before their gradient is written.
template <class T>
void vocabulary_loss(const Pass& pass, const VocabularyHead& head, const Batch& batch, const ConstMatrix<T>& x,
                     const ConstVector<std::int32_t>& labels, float scale, const VocabularyWorkspace<T>& workspace,
                     const Vector<float>& losses, const Matrix<T>& dx);

/// Callback that receives rows [first_row, first_row + R) of the logits.
using LogitsAction = std::function<void(std::size_t first_row, const ConstMatrix<float>& logits)>;

/// Computes logits from x (T, H), forward only, and calls `action` with one chunk after the other.
template <class T>
void for_each_logits_chunk(const Pass& pass, const VocabularyHead& head, const ConstMatrix<T>& x,
                           const VocabularyWorkspace<T>& workspace, const LogitsAction& action);

/// Computes workspace.row_losses for the rows of one chunk, from the labels (T) of the whole batch.
template <class T>
void chunk_losses(const Pass& pass, const ConstVector<std::int32_t>& labels, std::size_t first_row,
                  const ConstMatrix<float>& logits, const VocabularyWorkspace<T>& workspace);

/// losses (S) = the sum of row_losses (T) over each sample's rows [starts[s], starts[s + 1]). Does the same with hits
/// (S) and row_hits (T), unless `hits` has no extent.
void sum_sample_losses(const ExecutionSpace& space, const ConstVector<std::size_t>& starts,
                       const ConstVector<float>& row_losses, const Vector<float>& losses,
                       const ConstVector<float>& row_hits = {}, const Vector<float>& hits = {});

}  // namespace mylos::nn
