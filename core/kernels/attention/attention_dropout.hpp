#pragma once

#include "core/kernels/attention/attention.hpp"

#include <cstddef>
#include <cstdint>

/// Dropout of attention's probabilities as an array of bits, drawn once per pass by a kernel of its own. Drawing takes
/// some 80 instructions for eight keys, and a pass that draws while it multiplies waits for them.
namespace mylos::attention {

/// One bit for each pair of a query and a key of the same sequence, set if dropout keeps the pair. Words (A, W, T) hold
/// 32 keys of a query, for W words per query of the longest sequence. Words beyond the end of a query's sequence, and
/// those whose keys a causal mask hides, are not written.
struct KeptPairs {
  std::uint32_t* words = nullptr;
  std::size_t rows = 0;            ///< T
  std::size_t words_of_query = 0;  ///< W

  KOKKOS_FORCEINLINE_FUNCTION std::uint32_t* at(std::size_t head, std::size_t word, std::size_t row) const {
    return words + (head * words_of_query + word) * rows + row;
  }
};

/// Keys per word.
inline constexpr std::size_t keys_of_word = 32;

inline std::size_t kept_words_of_query(std::size_t longest) { return (longest + keys_of_word - 1) / keys_of_word; }
/// Returns the bytes that the words of a batch of `rows` rows take, with sequences of at most `longest` rows.
inline std::size_t kept_pairs_bytes(std::size_t heads, std::size_t rows, std::size_t longest) {
  return heads * kept_words_of_query(longest) * rows * sizeof(std::uint32_t);
}

/// Draws the bits of all pairs; `pairs` must have room for the words of the batch.
void draw_kept_pairs(const ExecutionSpace& space, const AttentionShape& shape, const PackedSequences& sequences,
                     const DropoutKey& dropout, const KeptPairs& pairs);

}  // namespace mylos::attention
