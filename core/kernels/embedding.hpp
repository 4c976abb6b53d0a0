#pragma once

#include "core/device.hpp"
#include "core/index_groups.hpp"
#include "core/numeric.hpp"

/// Rows gathered from tables, and the gradients of those tables. Deterministic, without atomics; only rows that occur
/// are accessed.
namespace mylos {

/// y (T, H) = table[indices[row]] (first table) or += (further ones). Errors: none; the indices must have been checked
/// on the host. `distinct` is the number of different indices, for the work estimate; 0 if unknown.
template <class T>
void embedding_lookup(const ExecutionSpace& space, const ConstVector<std::int32_t>& indices,
                      const ConstMatrix<T>& table, bool accumulate, const Matrix<T>& y, std::size_t distinct = 0);

/// A padding index that never occurs: all rows get gradients.
inline constexpr std::int32_t no_padding = -1;

/// dtable[group value] += sum of dy over the group's rows, in order. The row `padding` of dtable is unchanged, as in
/// PyTorch's nn.Embedding(padding_idx=...).
template <class T>
void embedding_gradient(const ExecutionSpace& space, const IndexGroups& groups, const ConstMatrix<T>& dy,
                        const Matrix<float>& dtable, std::int32_t padding = no_padding);

}  // namespace mylos
