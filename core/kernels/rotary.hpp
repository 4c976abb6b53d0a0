#pragma once

#include "core/device.hpp"
#include "core/numeric.hpp"

/// Rotary position embeddings (Su et al. 2021), in place. Elements i and i + D/2 of a head form a pair, as in Hugging
/// Face (the paper pairs adjacent elements); at position p, pair i is rotated by the angle p * frequency[i].
/// Deterministic.
namespace mylos {

/// Maximum head size: frequencies are passed to the kernel as an argument.
inline constexpr std::size_t largest_rotary_head = 256;

struct RotaryFrequencies {
  std::size_t pairs = 0;                        ///< D/2
  float scale = 1.0f;                           ///< of cosines and sines
  float radians[largest_rotary_head / 2] = {};  ///< angle of each pair per position
};

/// table (T, D): cosines of the D/2 angles of each row's position, then their sines. Used by all layers.
void rotary_table(const ExecutionSpace& space, const ConstVector<std::int32_t>& positions,
                  const RotaryFrequencies& frequencies, const Matrix<float>& table);

enum class Rotation {
  forward,   ///< (a, b) -> (a cos - b sin, b cos + a sin)
  backward,  ///< the transpose, for gradients
};

/// Rotates the first `heads` heads of D columns in each row of x (T, columns): the queries and keys of qkv.
template <class T>
void rotate(const ExecutionSpace& space, const ConstMatrix<float>& table, std::size_t heads, Rotation rotation,
            const Matrix<T>& x);

}  // namespace mylos
