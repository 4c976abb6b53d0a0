#pragma once

#include "core/kernels/gpu/matrix_tiles.hpp"

namespace mylos::matrix {

/// Products of tiles by mma.m16n8k16, for devices of compute capability 8.0 or later: 16 x 8 elements of C by 16 inner
/// elements. Thread 4 g + t holds rows g and g + 8 of C at columns 2 t and 2 t + 1: c[0], c[1] and c[2], c[3]. Of the
/// left operand it holds pairs of columns 2 t and 2 t + 8 in rows g and g + 8, so two adjacent tiles of C, converted,
/// are a left operand.
struct M16n8k16 : Lanes<32, 8> {
  /// Return g and t of a thread of the warp, the thread with this g and t, and the first row of a fragment that the
  /// threads of g hold.
  static MYLOS_BLOCK_FUNCTION constexpr int group(int lane) { return lane / 4; }
  static MYLOS_BLOCK_FUNCTION constexpr int in_group(int lane) { return lane % 4; }
  static MYLOS_BLOCK_FUNCTION constexpr int lane(int group, int in_group) { return 4 * group + in_group; }
  static MYLOS_BLOCK_FUNCTION constexpr int row(int group) { return group; }

  /// Return which octet of a row, and which of its words, a thread's pair of columns in a tile of multiply_add is.
  static MYLOS_BLOCK_FUNCTION constexpr int sum_octet(int tile, int /*in_group*/) { return tile; }
  static MYLOS_BLOCK_FUNCTION constexpr int sum_word(int /*tile*/, int in_group) { return in_group; }

  /// Return the address from which a thread loads, in the tile at octet `tile`, for the products below.
  /// This one is for left operands: rows [row, row + 16).
  template <int size, class Block>
  static MYLOS_BLOCK_FUNCTION std::uint32_t left_address(const Block& block, int tile, int row) {
    return block.address(tile + position<size>(row + block.lane() % 16, block.lane() / 16));
  }
  /// For right operands of X Y^T: rows [row, row + 16) of Y.
  template <int size, class Block>
  static MYLOS_BLOCK_FUNCTION std::uint32_t transposed_address(const Block& block, int tile, int row) {
    return block.address(tile + position<size>(row + block.lane() / 16 * 8 + block.lane() % 8, block.lane() / 8 % 2));
  }
  /// For right operands of X Y: rows [row, row + 16) of Y.
  template <int size, class Block>
  static MYLOS_BLOCK_FUNCTION std::uint32_t right_address(const Block& block, int tile, int row) {
    return left_address<size>(block, tile, row);
  }

  /// operands = sums, rounded to T.
  template <class T, class Block, int fragments, int columns>
  static MYLOS_BLOCK_FUNCTION void round(const Block& block, const Sums<M16n8k16, fragments, columns>& sums,
                                         Operands<M16n8k16, fragments, columns>& operands) {
    MYLOS_UNROLLED
    for (int f = 0; f < fragments; ++f) {
      MYLOS_UNROLLED
      for (int k = 0; k < operands.steps; ++k) {
        MYLOS_UNROLLED
        for (int half = 0; half < 2; ++half) {
          const float(&c)[4] = sums.c[f][2 * k + half];
          operands.a[f][k][2 * half] = block.template pack<T>(c[0], c[1]);
          operands.a[f][k][2 * half + 1] = block.template pack<T>(c[2], c[3]);
        }
      }
    }
  }

  /// sums = left (16 fragments rows, size) times the transpose of right (columns rows, size), given by their addresses.
  template <class T, int size, class Block, int fragments, int columns>
  static MYLOS_BLOCK_FUNCTION void multiply_transposed(const Block& block, std::uint32_t left, std::uint32_t right,
                                                       Sums<M16n8k16, fragments, columns>& sums) {
    sums.clear();
    MYLOS_UNROLLED
    for (int k = 0; k < size / fragment_inner; ++k) {
      std::uint32_t a[fragments][4];
      MYLOS_UNROLLED
      for (int f = 0; f < fragments; ++f) block.load_matrices(further<size>(left, f, 2 * k), a[f]);
      MYLOS_UNROLLED
      for (int j = 0; j < columns / 16; ++j) {
        std::uint32_t b[4];
        block.load_matrices(further<size>(right, j, 2 * k), b);
        MYLOS_UNROLLED
        for (int f = 0; f < fragments; ++f) {
          block.template multiply_add<T>(sums.c[f][2 * j], a[f], b[0], b[1]);
          block.template multiply_add<T>(sums.c[f][2 * j + 1], a[f], b[2], b[3]);
        }
      }
    }
  }

  /// sums (16 fragments, size) += left (16 fragments, inner) times right (inner rows, size), given by its address.
  template <class T, int size, class Block, int fragments, int inner>
  static MYLOS_BLOCK_FUNCTION void multiply_add(const Block& block, const Operands<M16n8k16, fragments, inner>& left,
                                                std::uint32_t right, Sums<M16n8k16, fragments, size>& sums) {
    MYLOS_UNROLLED
    for (int k = 0; k < inner / fragment_inner; ++k) {
      MYLOS_UNROLLED
      for (int j = 0; j < size / 16; ++j) {
        std::uint32_t b[4];
        block.load_matrices_transposed(further<size>(right, k, 2 * j), b);
        MYLOS_UNROLLED
        for (int f = 0; f < fragments; ++f) {
          block.template multiply_add<T>(sums.c[f][2 * j], left.a[f][k], b[0], b[1]);
          block.template multiply_add<T>(sums.c[f][2 * j + 1], left.a[f][k], b[2], b[3]);
        }
      }
    }
  }
};

}  // namespace mylos::matrix
