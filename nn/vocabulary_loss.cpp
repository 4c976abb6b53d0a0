#include "nn/vocabulary_loss.hpp"

#include "core/base/error.hpp"
#include "core/kernels/cross_entropy.hpp"
#include "core/kernels/team.hpp"
#include "core/work.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace mylos::nn {
namespace {

constexpr std::size_t chunk_elements = std::size_t{1} << 25;  // 128 MiB of float logits
constexpr std::size_t chunk_multiple = 128;                   // rows that a matrix product processes at once

/// Returns the rows per chunk. Each chunk reads and writes the whole gradient of the head, (V, H), so a few large
/// chunks move fewer bytes. The size depends on V alone and not on free memory, so that the results do not depend on it
/// either.
std::size_t chunk_rows(std::size_t vocabulary) {
  const std::size_t rows = chunk_elements / vocabulary;
  return std::max(rows - rows % chunk_multiple, chunk_multiple);
}

/// Rows [begin, end) of a matrix.
template <class T>
Matrix<T> row_range(const Matrix<T>& whole, std::size_t begin, std::size_t end) {
  return Matrix<T>(whole.data() + begin * whole.extent(1), end - begin, whole.extent(1));
}

struct SampleSum {
  ConstVector<std::size_t> starts;
  ConstVector<float> row_losses;
  Vector<float> losses;
  ConstVector<float> row_hits;
  Vector<float> hits;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t sample) const {
    const std::size_t begin = starts(sample), count = starts(sample + 1) - begin;
    const auto sum_of = [&](const ConstVector<float>& rows) {
      const float* const in = rows.data() + begin;
      return team_sum(team, count, [=](std::size_t i) { return in[i]; });
    };
    losses(sample) = sum_of(row_losses);
    if (hits.extent(0) > 0) hits(sample) = sum_of(row_hits);
  }
};

/// Loss and gradient for the rows [begin, end), whose logits are in the workspace.
template <class T>
void chunk_cross_entropy(const Pass& pass, const ConstVector<std::int32_t>& labels, float scale, std::size_t begin,
                         std::size_t end, const ConstMatrix<float>& logits, const VocabularyWorkspace<T>& workspace,
                         const Matrix<T>& dlogits) {
  cross_entropy<T>(pass.space, logits, slice(labels, begin, end), scale, slice(workspace.row_losses, begin, end),
                   dlogits, 0.0f, pass.loss_scale);
}

}  // namespace

VocabularyHead find_vocabulary_head(const ParameterTable& table, const std::string& weight) {
  const std::size_t row = table.find(weight);
  const auto& shape = table.tensor(row).shape;
  require(shape.size() == 2,
          fmt::format("vocabulary head: {} has {} dimensions, not the 2 of a matrix (V, H)", weight, shape.size()));
  return {row, shape[0], chunk_rows(shape[0])};
}

template <class T>
VocabularyWorkspace<T> take_vocabulary_workspace(Arena& arena, const VocabularyHead& head, std::size_t rows,
                                                 ParameterStore::Purpose purpose) {
  const std::size_t chunk = std::min(head.chunk, rows);
  const std::size_t gradients = purpose == ParameterStore::Purpose::training ? chunk : 0;
  return {arena.vector<float>(rows), arena.matrix<float>(chunk, head.vocabulary),
          arena.matrix<T>(gradients, head.vocabulary)};
}

template <class T>
void for_each_logits_chunk(const Pass& pass, const VocabularyHead& head, const ConstMatrix<T>& x,
                           const VocabularyWorkspace<T>& workspace, const LogitsAction& action) {
  const ConstMatrix<T> weight = pass.parameters.matrix<T>(head.weight);
  for (std::size_t begin = 0; begin < x.extent(0); begin += head.chunk) {
    const std::size_t end = std::min(begin + head.chunk, x.extent(0));
    const Matrix<float> logits = row_range(workspace.logits, 0, end - begin);
    pass.gemm.operator()<T, float>(pass.space, Transpose::no, row_range(x, begin, end), Transpose::yes, weight, 0.0f,
                                   logits);
    action(begin, logits);
  }
}

template <class T>
void chunk_losses(const Pass& pass, const ConstVector<std::int32_t>& labels, std::size_t first_row,
                  const ConstMatrix<float>& logits, const VocabularyWorkspace<T>& workspace) {
  chunk_cross_entropy<T>(pass, labels, 0.0f, first_row, first_row + logits.extent(0), logits, workspace, {});
}

template <class T>
void vocabulary_loss(const Pass& pass, const VocabularyHead& head, const Batch& batch, const ConstMatrix<T>& x,
                     const ConstVector<std::int32_t>& labels, float scale, const VocabularyWorkspace<T>& workspace,
                     const Vector<float>& losses, const Matrix<T>& dx) {
  require(labels.size() == x.extent(0) && x.extent(0) == batch.shape().rows,
          fmt::format("vocabulary loss: {} labels and {} rows for a batch of {}", labels.size(), x.extent(0),
                      batch.shape().rows));
  const ConstMatrix<T> weight = pass.parameters.matrix<T>(head.weight);
  const bool begins = pass.parameters.begins_gradient(head.weight, 1);
  const Matrix<float> dweight = pass.parameters.gradient_matrix(head.weight);
  for_each_logits_chunk<T>(pass, head, x, workspace, [&](std::size_t begin, const ConstMatrix<float>& logits) {
    const std::size_t end = begin + logits.extent(0);
    const Matrix<T> dlogits = row_range(workspace.dlogits, 0, logits.extent(0));
    chunk_cross_entropy<T>(pass, labels, scale, begin, end, logits, workspace, dlogits);
    pass.gemm.operator()<T, float>(pass.space, Transpose::yes, dlogits, Transpose::no, row_range(x, begin, end),
                                   begins && begin == 0 ? 0.0f : 1.0f, dweight);
    pass.gemm.operator()<T, T>(pass.space, Transpose::no, dlogits, Transpose::no, weight, 0.0f,
                               row_range(dx, begin, end));
  });
  sum_sample_losses(pass.space, batch.sample_starts(), workspace.row_losses, losses);
}

void sum_sample_losses(const ExecutionSpace& space, const ConstVector<std::size_t>& starts,
                       const ConstVector<float>& row_losses, const Vector<float>& losses,
                       const ConstVector<float>& row_hits, const Vector<float>& hits) {
  for_each_row(with_work("mylos::vocabulary_loss::samples", work_of(row_losses.size(), 1.0, sizeof(float))), space,
               losses.size(), SampleSum{starts, row_losses, losses, row_hits, hits});
}

#define MYLOS_INSTANTIATE(T)                                                                                           \
  template VocabularyWorkspace<T> take_vocabulary_workspace<T>(Arena&, const VocabularyHead&, std::size_t,             \
                                                               ParameterStore::Purpose);                               \
  template void vocabulary_loss<T>(const Pass&, const VocabularyHead&, const Batch&, const ConstMatrix<T>&,            \
                                   const ConstVector<std::int32_t>&, float, const VocabularyWorkspace<T>&,             \
                                   const Vector<float>&, const Matrix<T>&);                                            \
  template void for_each_logits_chunk<T>(const Pass&, const VocabularyHead&, const ConstMatrix<T>&,                    \
                                         const VocabularyWorkspace<T>&, const LogitsAction&);                          \
  template void chunk_losses<T>(const Pass&, const ConstVector<std::int32_t>&, std::size_t, const ConstMatrix<float>&, \
                                const VocabularyWorkspace<T>&);
MYLOS_INSTANTIATE(float)
MYLOS_INSTANTIATE(bfloat16)
MYLOS_INSTANTIATE(half)
#undef MYLOS_INSTANTIATE

}  // namespace mylos::nn
