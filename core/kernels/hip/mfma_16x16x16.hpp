#pragma once

#include "core/kernels/gpu/matrix_tiles.hpp"

namespace mylos::matrix {

/// Products of tiles by v_mfma_f32_16x16x16, for waves of 64 threads on GPUs of AMD from gfx90a on. AMD's documents of
/// the instruction set specify it: thread 16 t + g holds inner elements 4 t to 4 t + 3 of row g of the left operand and
/// of column g of the right one, and rows 4 t to 4 t + 3 of column g of C.
///
/// Here all of them are transposed. So a thread holds row g of C at columns 4 t to 4 t + 3, which, rounded, are its
/// part of a left operand.
struct Mfma16x16x16 : Lanes<64, 0> {
  /// Return g and t of a thread of the warp, the thread with this g and t, and the first row of a fragment that the
  /// threads of g hold.
  static MYLOS_BLOCK_FUNCTION constexpr int group(int lane) { return lane % 16; }
  static MYLOS_BLOCK_FUNCTION constexpr int in_group(int lane) { return lane / 16; }
  static MYLOS_BLOCK_FUNCTION constexpr int lane(int group, int in_group) { return 16 * in_group + group; }
  static MYLOS_BLOCK_FUNCTION constexpr int row(int group) { return group; }

  /// Return which octet of a row, and which of its words, a thread's pair of columns in the sums of multiply_add is,
  /// and the elements of a pair. A thread loads two adjacent columns for two tiles, so that it has half a pair in each.
  static MYLOS_BLOCK_FUNCTION constexpr int sum_octet(int pair, int in_group) { return (pair & ~3) + in_group; }
  static MYLOS_BLOCK_FUNCTION constexpr int sum_word(int pair, int /*in_group*/) { return pair & 3; }
  template <int tiles>
  static MYLOS_BLOCK_FUNCTION constexpr float sum(const float (&c)[tiles][4], int pair, int /*half*/, int i) {
    return c[pair / 4 * 2 + i][pair % 4];
  }

  /// Return the address from which a thread loads, in the tile at octet `tile`, for the products below.
  /// This one is for left operands: rows [row, row + 16).
  template <int size, class Block>
  static MYLOS_BLOCK_FUNCTION std::uint32_t left_address(const Block& block, int tile, int row) {
    return block.address(tile + position<size>(row + group(block.lane()), in_group(block.lane())));
  }
  /// For right operands of X Y^T: rows [row, row + 16) of Y.
  template <int size, class Block>
  static MYLOS_BLOCK_FUNCTION std::uint32_t transposed_address(const Block& block, int tile, int row) {
    return left_address<size>(block, tile, row);
  }
  /// For right operands of X Y: rows [row, row + 16) of Y. A thread has four of them, at two adjacent columns.
  template <int size, class Block>
  static MYLOS_BLOCK_FUNCTION std::uint32_t right_address(const Block& block, int tile, int row) {
    const int g = group(block.lane()), t = in_group(block.lane());
    return block.address(tile + position<size>(row + 4 * t, g / 4)) + g % 4 * sizeof(std::uint32_t);
  }

  /// operands = sums, rounded to T.
  template <class T, class Block, int fragments, int columns>
  static MYLOS_BLOCK_FUNCTION void round(const Block& block, const Sums<Mfma16x16x16, fragments, columns>& sums,
                                         Operands<Mfma16x16x16, fragments, columns>& operands) {
    MYLOS_UNROLLED
    for (int f = 0; f < fragments; ++f) {
      MYLOS_UNROLLED
      for (int k = 0; k < operands.steps; ++k) {
        const float(&c)[4] = sums.c[f][k];
        operands.a[f][k][0] = block.template pack<T>(c[0], c[1]);
        operands.a[f][k][1] = block.template pack<T>(c[2], c[3]);
      }
    }
  }

  /// sums = left (16 fragments rows, size) times the transpose of right (columns rows, size), given by their addresses.
  /// A thread's octets of both are inner elements of two instructions.
  template <class T, int size, class Block, int fragments, int columns>
  static MYLOS_BLOCK_FUNCTION void multiply_transposed(const Block& block, std::uint32_t left, std::uint32_t right,
                                                       Sums<Mfma16x16x16, fragments, columns>& sums) {
    sums.clear();
    MYLOS_UNROLLED
    for (int octet = 0; octet < size / octet_size; octet += 4) {
      std::uint32_t a[fragments][4];
      MYLOS_UNROLLED
      for (int f = 0; f < fragments; ++f) block.load_octet(further<size>(left, f, octet), a[f]);
      MYLOS_UNROLLED
      for (int j = 0; j < sums.tiles; ++j) {
        std::uint32_t b[4];
        block.load_octet(further<size>(right, j, octet), b);
        MYLOS_UNROLLED
        for (int f = 0; f < fragments; ++f) {
          MYLOS_UNROLLED
          for (int i = 0; i < 4; i += 2) {
            block.template multiply_add<T>(sums.c[f][j], b[i], b[i + 1], a[f][i], a[f][i + 1]);
          }
        }
      }
    }
  }

  /// sums (16 fragments, size) += left (16 fragments, inner) times right (inner rows, size), given by its address.
  template <class T, int size, class Block, int fragments, int inner>
  static MYLOS_BLOCK_FUNCTION void multiply_add(const Block& block,
                                                const Operands<Mfma16x16x16, fragments, inner>& left,
                                                std::uint32_t right, Sums<Mfma16x16x16, fragments, size>& sums) {
    constexpr int octets = size / octet_size;
    MYLOS_UNROLLED
    for (int k = 0; k < left.steps; ++k) {
      MYLOS_UNROLLED
      for (int octet = 0; octet < octets; octet += 4) {
        std::uint32_t pairs[4];  // of the thread's four rows
        MYLOS_UNROLLED
        for (int i = 0; i < 4; ++i) {
          const auto pattern = static_cast<std::uint32_t>((position<size>(i, 0) - i * octets) * sizeof(Octet));
          pairs[i] = block.load_word(further<size>(right ^ pattern, k, octet) + i * octets * sizeof(Octet));
        }
        MYLOS_UNROLLED
        for (int f = 0; f < fragments; ++f) {
          const std::uint32_t(&a)[2] = left.a[f][k];
          float(*const c)[4] = sums.c[f] + octet / 2;
          block.template multiply_add<T>(c[0], lower(pairs[0], pairs[1]), lower(pairs[2], pairs[3]), a[0], a[1]);
          block.template multiply_add<T>(c[1], upper(pairs[0], pairs[1]), upper(pairs[2], pairs[3]), a[0], a[1]);
        }
      }
    }
  }

 private:
  /// Return the lower and the upper halves of two words as a pair.
  static MYLOS_BLOCK_FUNCTION std::uint32_t lower(std::uint32_t x, std::uint32_t y) { return (x & 0xffffu) | y << 16; }
  static MYLOS_BLOCK_FUNCTION std::uint32_t upper(std::uint32_t x, std::uint32_t y) {
    return x >> 16 | (y & 0xffff0000u);
  }
};

}  // namespace mylos::matrix
