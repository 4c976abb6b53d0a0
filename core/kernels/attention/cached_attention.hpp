#pragma once

#include "core/kernels/attention/attention.hpp"

/// Attention of one query per sequence over cached keys and values of the tokens before it, to generate a token without
/// a pass over all of them. Query heads use keys and values in groups. Deterministic: blocks of a fixed number of
/// positions are summed one by one, so a row has the same bits regardless of the other rows.
namespace mylos {

/// Keys and values of one layer. Each of S slots holds those of the first tokens of a sequence, up to P.
template <class T>
struct KeyValueCache {
  Vector<T> keys;    ///< (S, KV, D, P): one product gives the scores of adjacent positions
  Vector<T> values;  ///< (S, KV, P, D)
  std::size_t slots = 0;
  std::size_t positions = 0;  ///< P
};

/// The tokens of a batch of rows: the sample of each row and the cache slot of each sample, and each token's position
/// in its sequence, from 0. Slots and positions must be within the cache's ranges.
struct CachedRows {
  ConstVector<std::uint32_t> slots;     ///< (S) cache slot of each sample
  ConstVector<std::uint32_t> samples;   ///< (B) sample of each row
  ConstVector<std::int32_t> positions;  ///< (B)
  std::size_t longest = 0;              ///< largest position + 1
  std::size_t visible = 0;              ///< sum of (position + 1) over the rows

  KOKKOS_FORCEINLINE_FUNCTION std::size_t slot(std::size_t row) const { return slots(samples(row)); }
};

/// Stores the keys and values of qkv (B, (A + 2 KV) D) in the cache at the rows' slots and positions.
template <class T>
void store_keys_values(const ExecutionSpace& space, const AttentionShape& shape, const ConstMatrix<T>& qkv,
                       const CachedRows& rows, const KeyValueCache<T>& cache);

/// Floats of workspace that cached_attention needs for `rows` rows that see up to `longest` positions.
std::size_t cached_attention_workspace(const AttentionShape& shape, std::size_t rows, std::size_t longest);

/// out (B, A D) = attention of the queries of qkv (B, (A + 2 KV) D) over the cached positions up to and including each
/// row's own, those within its window if there is one. Errors: std::invalid_argument if sizes do not match.
template <class T>
void cached_attention(const ExecutionSpace& space, const AttentionShape& shape, const ConstMatrix<T>& qkv,
                      const CachedRows& rows, const KeyValueCache<T>& cache, const Vector<float>& workspace,
                      const Matrix<T>& out);

}  // namespace mylos
