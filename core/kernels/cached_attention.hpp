#pragma once

#include "core/kernels/attention.hpp"

/// Attention of one query a sequence over keys and values that are kept from the tokens before it: what generating a
/// token takes instead of a pass over all of them. Query heads share keys and values in groups. Deterministic: blocks
/// of a fixed number of positions are summed one by one, so that a row has the same bits whatever other rows there are.
namespace mylos {

/// Keys and values of one layer. Each of S slots holds those of a sequence's first tokens, up to P.
template <class T>
struct KeyValueCache {
  Vector<T> keys;    ///< (S, KV, D, P): one product makes the scores of neighbouring positions
  Vector<T> values;  ///< (S, KV, P, D)
  std::size_t slots = 0;
  std::size_t positions = 0;  ///< P
};

/// The tokens of some rows: the slot of each row's sequence and the token's position in it, from 0.
struct CachedRows {
  ConstVector<std::int32_t> slots, positions;  ///< (B), in the ranges of the cache
  std::size_t longest = 0;                     ///< the largest position + 1
  std::size_t visible = 0;                     ///< the sum of all positions + 1
};

/// Puts the keys and values of qkv (B, (A + 2 KV) D) where the rows say.
template <class T>
void store_keys_values(const ExecutionSpace& space, const AttentionShape& shape, const ConstMatrix<T>& qkv,
                       const CachedRows& rows, const KeyValueCache<T>& cache);

/// Floats that cached_attention works in for `rows` rows that see up to `longest` positions.
std::size_t cached_attention_workspace(const AttentionShape& shape, std::size_t rows, std::size_t longest);

/// out (B, A D) = attention of the queries of qkv (B, (A + 2 KV) D) over the positions up to each row's own, whose keys
/// and values are in the cache. Errors: std::invalid_argument where sizes do not fit.
template <class T>
void cached_attention(const ExecutionSpace& space, const AttentionShape& shape, const ConstMatrix<T>& qkv,
                      const CachedRows& rows, const KeyValueCache<T>& cache, const Vector<float>& workspace,
                      const Matrix<T>& out);

}  // namespace mylos
