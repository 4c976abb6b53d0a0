#pragma once

#include "core/device.hpp"
#include "core/numeric.hpp"

/// Rotary position embeddings (Su et al. 2021), in place. Element i and element i + D/2 of a head are a pair, as
/// Hugging Face has them (the paper pairs neighbours); at position p pair i turns by the angle p * frequency[i].
/// Deterministic.
namespace mylos {

/// Heads larger than this are refused: frequencies travel as an argument of the kernel.
inline constexpr std::size_t largest_rotary_head = 256;

struct RotaryFrequencies {
  std::size_t pairs = 0;                        ///< D/2
  float radians[largest_rotary_head / 2] = {};  ///< of each pair, a position
};

/// table (T, D): cosines of the D/2 angles of each row's position, then their sines. All layers share it.
void rotary_table(const ExecutionSpace& space, const ConstVector<std::int32_t>& positions,
                  const RotaryFrequencies& frequencies, const Matrix<float>& table);

enum class Rotation {
  forward,   ///< (a, b) -> (a cos - b sin, b cos + a sin)
  backward,  ///< its transpose, which turns gradients back
};

/// Turns the first `heads` heads of D columns of each row of x (T, columns): those of queries and keys in qkv.
template <class T>
void rotate(const ExecutionSpace& space, const ConstMatrix<float>& table, std::size_t heads, Rotation rotation,
            const Matrix<T>& x);

}  // namespace mylos
