#pragma once

#include "core/device.hpp"

#include <cstddef>
#include <cstdint>

/// Tiles of 16-bit elements in the shared memory of a thread block, and a warp's parts of products. All code is plain
/// C++ over a `Block`, which provides the instructions: cuda_block.hpp and hip_block.hpp on a device. The tests use a
/// host implementation that runs a block's threads as a device does, which also tests every index in this file.
///
/// `Block::Mma` multiplies tiles on tensor cores: M16n8k16 (m16n8k16.hpp) from compute capability 8.0 on, M8n8k4
/// (m8n8k4.hpp) on 7.0, Mfma16x16x16 (mfma_16x16x16.hpp) on GPUs of AMD. With each, a warp's part of a matrix consists
/// of fragments of 16 rows and of tiles, which Lanes describes. The values of g (Mma::group) tell which rows of a tile
/// a thread holds, the four of t (Mma::in_group) which columns.
namespace mylos::matrix {

#if defined(MYLOS_DEVICE_BUILD)
#define MYLOS_BLOCK_FUNCTION __device__ __forceinline__
#define MYLOS_LOOP _Pragma("unroll 1")
#else
#define MYLOS_BLOCK_FUNCTION inline
#define MYLOS_LOOP
#endif

/// Warps of a block, rows of a fragment, and inner elements of an operand's step.
inline constexpr int warps = 4, fragment_rows = 16, fragment_inner = 16;

/// A warp of 32 or 64 threads, each of which holds four elements of a tile: `halves` rows, `half_rows` apart, at
/// `adjacent` columns from column adjacent * t on. The base of each Mma.
template <int warp_size, int distance>
struct Lanes {
  static constexpr int lanes = warp_size, threads = warps * lanes, half_rows = distance;
  static constexpr int halves = 64 / lanes, adjacent = 4 / halves, columns = 4 * adjacent;

  /// Return the row of a half of a thread's elements, if `first` is that in the first fragment, and the column of
  /// element i of a tile, if `first` is that of the first tile.
  static MYLOS_BLOCK_FUNCTION constexpr int row_of(int first, int fragment, int half) {
    return first + fragment * fragment_rows + half * half_rows;
  }
  static MYLOS_BLOCK_FUNCTION constexpr int column(int first, int tile, int t, int i) {
    return first + tile * columns + adjacent * t + i % adjacent;
  }

  /// Returns element i of pair `pair` in the sums of Mma::multiply_add; Mma::sum_octet and Mma::sum_word tell its
  /// columns.
  template <int tiles>
  static MYLOS_BLOCK_FUNCTION constexpr float sum(const float (&c)[tiles][4], int pair, int half, int i) {
    return c[pair][2 * half + i];
  }
};

/// Eight adjacent elements of a row: the unit of copies and loads.
struct alignas(16) Octet {
  std::uint32_t words[4];
};
inline constexpr int octet_size = 8;

/// Returns the dot product of two pairs of T.
template <class T>
MYLOS_BLOCK_FUNCTION float dot(std::uint32_t x, std::uint32_t y) {
  T a[2], b[2];
  a[0].bits = static_cast<std::uint16_t>(x);
  a[1].bits = static_cast<std::uint16_t>(x >> 16);
  b[0].bits = static_cast<std::uint16_t>(y);
  b[1].bits = static_cast<std::uint16_t>(y >> 16);
  return float(a[0]) * float(b[0]) + float(a[1]) * float(b[1]);
}

/// Returns the position of an octet of a row in a tile with rows of `size` elements. For one column, the octets of
/// eight rows are in eight different groups of four banks, so that an 8 x 8 matrix is loaded without bank conflicts.
/// Rows 8 apart have the same pattern, and the position of octet i is that of octet 0 with the bits of i inverted
/// (exclusive or).
template <int size>
MYLOS_BLOCK_FUNCTION constexpr int position(int row, int octet) {
  constexpr int octets = size / octet_size;
  static_assert(octets == 4 || octets == 8 || octets == 16, "heads of 32, 64, 128 elements");
  constexpr int rows_per_line = octets < 8 ? 8 / octets : 1, mask = octets < 8 ? octets - 1 : 7;
  return row * octets + (octet ^ ((row / rows_per_line) & mask));
}

/// Alignment of tiles, in octets of shared memory. Shared memory itself is aligned to it too, so that addresses have
/// the low bits of positions.
inline constexpr int tile_alignment = 16;

/// Starts copying `rows` rows of `size` elements to the tile at octet `tile`; rows from `filled` on are set to zero and
/// not read.
template <int size, int rows, class Block, class T>
MYLOS_BLOCK_FUNCTION void copy_tile(const Block& block, const T* from, std::size_t stride, int filled, int tile) {
  constexpr int octets = size / octet_size, step = Block::Mma::threads / octets;
  static_assert(rows % step == 0 && step % 8 == 0);
  const int row = block.thread() / octets, octet = block.thread() % octets;
  const std::uint32_t to = block.address(tile + position<size>(row, octet));
  const T* own = from + row * stride + octet * octet_size;
  if (filled >= rows) {  // most tiles are full
    MYLOS_UNROLLED
    for (int first = 0; first < rows; first += step) {
      block.copy(to + first * octets * sizeof(Octet), own, true);
      own += step * stride;
    }
    return;
  }
  MYLOS_UNROLLED
  for (int first = 0; first < rows; first += step) {
    const bool is_there = first + row < filled;
    block.copy(to + first * octets * sizeof(Octet), is_there ? own : from, is_there);
    own += step * stride;
  }
}

/// Returns the address 16 `rows` rows and `columns` octets further on, for an address in octet 0 of a row or in an
/// octet whose number has no bit in common with `columns`.
template <int size>
MYLOS_BLOCK_FUNCTION std::uint32_t further(std::uint32_t address, int rows, int columns) {
  constexpr std::uint32_t of_rows = 16 * size * 2;
  return (address ^ static_cast<std::uint32_t>(columns) * sizeof(Octet)) + static_cast<std::uint32_t>(rows) * of_rows;
}

/// A thread's part of C: 16 `fragments` rows by `columns`.
template <class Mma, int fragments, int columns>
struct Sums {
  static constexpr int tiles = columns / Mma::columns;
  float c[fragments][tiles][4];

  MYLOS_BLOCK_FUNCTION void clear() {
    MYLOS_UNROLLED
    for (int f = 0; f < fragments; ++f) {
      MYLOS_UNROLLED
      for (int j = 0; j < tiles; ++j) {
        MYLOS_UNROLLED
        for (int i = 0; i < 4; ++i) c[f][j][i] = 0.0f;
      }
    }
  }

  /// Calls body(fragment, tile, i) for each element: row Mma::row_of(Mma::row(g), fragment, i / Mma::adjacent),
  /// column Mma::column(0, tile, t, i).
  template <class Body>
  static MYLOS_BLOCK_FUNCTION void for_each(const Body& body) {
    MYLOS_UNROLLED
    for (int f = 0; f < fragments; ++f) {
      MYLOS_UNROLLED
      for (int j = 0; j < tiles; ++j) {
        MYLOS_UNROLLED
        for (int i = 0; i < 4; ++i) body(f, j, i);
      }
    }
  }
};

/// A thread's part of left operands: 16 `fragments` rows by `columns`, as Mma::round makes and Mma::multiply_add takes
/// them.
template <class Mma, int fragments, int columns>
struct Operands {
  static constexpr int steps = columns / fragment_inner;
  std::uint32_t a[fragments][steps][2 * Mma::halves];
};

/// to (rows of `stride`) = factor(fragment, half) * sums of Mma::multiply_add, rounded to T, for the first `filled` of
/// the warp's rows. Stages them in the warp's rows of the tile at octet `tile`, from `row` on, which no other warp
/// reads, so that global memory is written 16 bytes at a time.
template <class T, int size, class Block, class Mma, int fragments, class Factor>
MYLOS_BLOCK_FUNCTION void store_rows(const Block& block, const Sums<Mma, fragments, size>& sums, const Factor& factor,
                                     int tile, int row, T* to, std::size_t stride, int filled) {
  constexpr int octets = size / octet_size;
  Octet* const shared = block.shared() + tile;
  const int g = Mma::group(block.lane()), t = Mma::in_group(block.lane());
  block.sync_warp();
  MYLOS_UNROLLED
  for (int f = 0; f < fragments; ++f) {
    MYLOS_UNROLLED
    for (int half = 0; half < Mma::halves; ++half) {
      const int own = Mma::row_of(Mma::row(g), f, half);
      const float x = factor(f, half);
      MYLOS_UNROLLED
      for (int j = 0; j < octets; ++j) {
        shared[position<size>(row + own, Mma::sum_octet(j, t))].words[Mma::sum_word(j, t)] =
            block.template pack<T>(x * Mma::sum(sums.c[f], j, half, 0), x * Mma::sum(sums.c[f], j, half, 1));
      }
    }
  }
  block.sync_warp();
  MYLOS_UNROLLED
  for (int first = 0; first < fragments * fragment_rows * octets; first += Mma::lanes) {
    const int i = first + block.lane(), own = i / octets, octet = i % octets;
    if (own < filled) {
      *reinterpret_cast<Octet*>(to + own * stride + octet * octet_size) = shared[position<size>(row + own, octet)];
    }
  }
}

}  // namespace mylos::matrix
