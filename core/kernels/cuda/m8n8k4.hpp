#pragma once

#include "core/kernels/gpu/matrix_tiles.hpp"

namespace mylos::matrix {

/// Products of tiles by mma.m8n8k4, for devices of compute capability 7.0. NVIDIA's "Parallel Thread Execution ISA"
/// specifies which thread holds which element, as for the instructions of later devices. It does not for wmma, with
/// which scores, probabilities and their gradients would pass through shared memory between products, and sums whenever
/// the maximum of a row changes.
///
/// One instruction multiplies four pairs of matrices, 8 x 4 by 4 x 8 elements, each in the eight threads of a quad
/// pair: quad pair p has lanes 4 p to 4 p + 3 and 16 + 4 p to 16 + 4 p + 3. Here they compute 16 x 16 elements of C,
/// which are two tiles. Bit 0 of p selects four of eight adjacent rows, bit 1 four of the eight columns of each tile.
/// With b0 to b4 the bits of its lane, a thread holds row b0 + 4 b2 + 8 b4 and the second after it, so g = b0 + 2 b2 +
/// 4 b4, and columns 2 b1 + 4 b3 and the next, so t = b1 + 2 b3.
///
/// Operands are loaded in octets, each for two instructions. Eight adjacent threads load without bank conflicts.
struct M8n8k4 : Lanes<32, 2> {
  /// Return g and t of a thread of the warp, the thread with this g and t, and the first row of a fragment that the
  /// threads of g hold.
  static MYLOS_BLOCK_FUNCTION constexpr int group(int lane) { return (lane & 1) | (lane >> 1 & 2) | (lane >> 2 & 4); }
  static MYLOS_BLOCK_FUNCTION constexpr int in_group(int lane) { return (lane >> 1 & 1) | (lane >> 2 & 2); }
  static MYLOS_BLOCK_FUNCTION constexpr int lane(int group, int in_group) {
    return (group & 1) | (in_group & 1) << 1 | (group & 2) << 1 | (in_group & 2) << 2 | (group & 4) << 2;
  }
  static MYLOS_BLOCK_FUNCTION constexpr int row(int group) { return (group & 1) | (group & 6) << 1; }

  /// Return which octet of a row, and which of its words, a thread's pair of columns in a tile of multiply_add is.
  /// These tiles do not have their columns in order, because a thread loads eight adjacent columns for two of them: of
  /// two tiles, one quad pair has an even octet and the other the next.
  static MYLOS_BLOCK_FUNCTION constexpr int sum_octet(int tile, int in_group) { return (tile & ~1) | in_group >> 1; }
  static MYLOS_BLOCK_FUNCTION constexpr int sum_word(int tile, int in_group) {
    return (tile & 1) << 1 | (in_group & 1);
  }

  /// Return the address from which a thread loads, in the tile at octet `tile`, for the products below.
  /// This function is for left operands: rows [row, row + 16). Each thread loads one row.
  template <int size, class Block>
  static MYLOS_BLOCK_FUNCTION std::uint32_t left_address(const Block& block, int tile, int row) {
    const int lane = block.lane();
    return block.address(tile + position<size>(row + (lane & 7) + (lane & 16) / 2, 0));
  }
  /// This function is for right operands of X Y^T: rows [row, row + 16) of Y. Each thread loads one row.
  template <int size, class Block>
  static MYLOS_BLOCK_FUNCTION std::uint32_t transposed_address(const Block& block, int tile, int row) {
    const int lane = block.lane();
    return block.address(tile + position<size>(row + (lane & 3) + (lane & 8) / 2 + (lane & 16) / 2, 0));
  }
  /// For right operands of X Y: rows [row, row + 8) of Y. A thread has one of the four rows that are the columns of its
  /// own part of X, and one of four octets.
  template <int size, class Block>
  static MYLOS_BLOCK_FUNCTION std::uint32_t right_address(const Block& block, int tile, int row) {
    const int lane = block.lane();
    return block.address(tile + position<size>(row + (lane & 3) + (lane & 8) / 2, (lane & 16) / 8 + (lane & 8) / 8));
  }

  /// operands = sums, rounded to T. A thread has one row of a left operand, and of each tile the four columns of its
  /// quad pair. Two are its own. It gets the others from the thread with the other value of b1, which needs the row
  /// that this thread does not.
  template <class T, class Block, int fragments, int columns>
  static MYLOS_BLOCK_FUNCTION void round(const Block& block, const Sums<M8n8k4, fragments, columns>& sums,
                                         Operands<M8n8k4, fragments, columns>& operands) {
    const int lane = block.lane();
    const bool has_second_row = (lane & 2) != 0;
    MYLOS_UNROLLED
    for (int f = 0; f < fragments; ++f) {
      MYLOS_UNROLLED
      for (int j = 0; j < sums.tiles; ++j) {
        const float(&c)[4] = sums.c[f][j];
        const std::uint32_t first = block.template pack<T>(c[0], c[1]), second = block.template pack<T>(c[2], c[3]);
        const std::uint32_t own = has_second_row ? second : first;
        const std::uint32_t theirs = block.shuffle(has_second_row ? first : second, lane ^ 2);
        std::uint32_t(&a)[4] = operands.a[f][j / 2];
        a[j % 2 * 2] = has_second_row ? theirs : own;
        a[j % 2 * 2 + 1] = has_second_row ? own : theirs;
      }
    }
  }

  /// sums = left (16 fragments rows, size) times the transpose of right (columns rows, size), given by their addresses.
  template <class T, int size, class Block, int fragments, int columns>
  static MYLOS_BLOCK_FUNCTION void multiply_transposed(const Block& block, std::uint32_t left, std::uint32_t right,
                                                       Sums<M8n8k4, fragments, columns>& sums) {
    sums.clear();
    MYLOS_UNROLLED
    for (int k = 0; k < size / octet_size; ++k) {
      std::uint32_t a[fragments][4];
      MYLOS_UNROLLED
      for (int f = 0; f < fragments; ++f) block.load_octet(further<size>(left, f, k), a[f]);
      MYLOS_UNROLLED
      for (int j = 0; j < columns / 16; ++j) {
        std::uint32_t b[4];
        block.load_octet(further<size>(right, j, k), b);
        MYLOS_UNROLLED
        for (int f = 0; f < fragments; ++f) {
          MYLOS_UNROLLED
          for (int i = 0; i < 4; i += 2) {
            block.template multiply_add_transposed<T>(sums.c[f][2 * j], sums.c[f][2 * j + 1], a[f][i], a[f][i + 1],
                                                      b[i], b[i + 1]);
          }
        }
      }
    }
  }

  /// sums (16 fragments, size) += left (16 fragments, inner) times right (inner rows, size), given by its address. Of
  /// each 8 inner elements, a quad pair first multiplies the four that it holds, then the four of the quad pair with
  /// the same rows (the other value of b3).
  template <class T, int size, class Block, int fragments, int inner>
  static MYLOS_BLOCK_FUNCTION void multiply_add(const Block& block, const Operands<M8n8k4, fragments, inner>& left,
                                                std::uint32_t right, Sums<M8n8k4, fragments, size>& sums) {
    constexpr int row_bytes = size * 2, columns_per_load = 32;
    const std::uint32_t rows[] = {right, other_rows<size>(block, right)};
    MYLOS_UNROLLED
    for (int k = 0; k < inner / 8; ++k) {
      MYLOS_UNROLLED
      for (int half = 0; half < 2; ++half) {
        std::uint32_t a[fragments][2];
        MYLOS_UNROLLED
        for (int f = 0; f < fragments; ++f) {
          MYLOS_UNROLLED
          for (int i = 0; i < 2; ++i) {
            const std::uint32_t own = left.a[f][k / 2][k % 2 * 2 + i];
            a[f][i] = half == 0 ? own : block.shuffle(own, block.lane() ^ 8);
          }
        }
        MYLOS_UNROLLED
        for (int j = 0; j < size / columns_per_load; ++j) {
          std::uint32_t b[4];
          block.load_octet(further<size>(rows[half], 0, 4 * j) + k * 8 * row_bytes, b);
          MYLOS_UNROLLED
          for (int f = 0; f < fragments; ++f) {
            MYLOS_UNROLLED
            for (int i = 0; i < 2; ++i) {
              block.template multiply_add<T>(sums.c[f][4 * j + i], sums.c[f][4 * j + 2 + i], a[f][0], a[f][1], b[2 * i],
                                             b[2 * i + 1]);
            }
          }
        }
      }
    }
  }

 private:
  /// Returns the address in the other four of the eight rows of a right_address.
  template <int size, class Block>
  static MYLOS_BLOCK_FUNCTION std::uint32_t other_rows(const Block& block, std::uint32_t right) {
    constexpr int octets = size / octet_size;
    constexpr std::uint32_t pattern = (position<size>(4, 0) - 4 * octets) * sizeof(Octet);
    constexpr std::uint32_t rows = 4 * octets * sizeof(Octet);
    return (block.lane() & 8) != 0 ? (right ^ pattern) - rows : (right ^ pattern) + rows;
  }
};

}  // namespace mylos::matrix
