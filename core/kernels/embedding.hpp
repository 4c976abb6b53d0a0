#pragma once

#include "core/batch.hpp"
#include "core/device.hpp"
#include "core/numeric.hpp"

/// Rows gathered from tables, and the gradients of those tables: deterministic, without atomics, touching only the rows
/// that occur.
namespace mylos {

/// y (T, H) = table[indices[row]] (first table) or += (further ones). Errors: none; indices were checked on the host.
/// `distinct` says how many different indices there are, from which the work is known; 0 = unknown.
template <class T>
void embedding_lookup(const ExecutionSpace& space, const ConstVector<std::int32_t>& indices,
                      const ConstMatrix<T>& table, bool accumulate, const Matrix<T>& y, std::size_t distinct = 0);

/// Matches no index: every row gets its gradient.
inline constexpr std::int32_t no_padding = -1;

/// dtable[group value] += sum of dy over the group's rows, in their order. The row `padding` of dtable is left alone,
/// as PyTorch's nn.Embedding(padding_idx=...) leaves it.
template <class T>
void embedding_gradient(const ExecutionSpace& space, const IndexGroups& groups, const ConstMatrix<T>& dy,
                        const Matrix<float>& dtable, std::int32_t padding = no_padding);

}  // namespace mylos
