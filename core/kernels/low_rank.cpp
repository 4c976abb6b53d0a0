#include "core/kernels/low_rank.hpp"

#include "core/base/error.hpp"
#include "core/kernels/dropout_loop.hpp"
#include "core/work.hpp"

#include <fmt/format.h>

namespace mylos {
namespace {

template <class T>
struct PlaceBlocks {
  LowRankBlocks blocks;
  BlockValues<T> b;
  Matrix<T> u;

  KOKKOS_INLINE_FUNCTION void operator()(std::size_t row) const {
    const std::size_t columns = u.extent(1);
    T* const out = u.data() + row * columns;
    for (std::size_t column = 0; column < columns; ++column) out[column] = T(0.0f);
    for (std::size_t i = 0; i < blocks.count; ++i) {
      const LowRankBlock& block = blocks.block[i];
      if (row - block.first_row >= block.rows) continue;  // wraps around before the block
      const T* const in = b[i].data() + (row - block.first_row) * block.rank;
      for (std::size_t k = 0; k < block.rank; ++k) out[block.first_column + k] = T(block.scale * float(in[k]));
    }
  }
};

struct AddBlocks {
  LowRankBlocks blocks;
  ConstMatrix<float> du;
  BlockGradients db;

  KOKKOS_INLINE_FUNCTION void operator()(std::size_t row) const {
    const float* const in = du.data() + row * du.extent(1);
    for (std::size_t i = 0; i < blocks.count; ++i) {
      const LowRankBlock& block = blocks.block[i];
      if (row - block.first_row >= block.rows) continue;
      float* const out = db[i].data() + (row - block.first_row) * block.rank;
      for (std::size_t k = 0; k < block.rank; ++k) out[k] += block.scale * in[block.first_column + k];
    }
  }
};

template <class T>
struct DropoutRow {
  DropoutKey key;
  DropoutRows rows;
  ConstMatrix<T> x;
  Matrix<T> y;
  bool adds;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t row) const {
    const std::size_t columns = x.extent(1);
    const T* const in = x.data() + row * columns;
    T* const out = y.data() + row * columns;
    if (adds) {
      return for_each_kept(team, key, rows, row, columns,
                           [=](std::size_t i, float factor) { out[i] = T(float(out[i]) + factor * float(in[i])); });
    }
    for_each_kept(team, key, rows, row, columns,
                  [=](std::size_t i, float factor) { out[i] = T(factor * float(in[i])); });
  }
};

void check_blocks(const LowRankBlocks& blocks, std::size_t rows, std::size_t columns) {
  for (std::size_t i = 0; i < blocks.count; ++i) {
    const LowRankBlock& block = blocks.block[i];
    require(block.first_row + block.rows <= rows && block.first_column + block.rank <= columns,
            fmt::format("low-rank block {}: beyond {} x {}", i, rows, columns));
  }
}

}  // namespace

template <class T>
void place_low_rank(const ExecutionSpace& space, const LowRankBlocks& blocks, const BlockValues<T>& b,
                    const Matrix<T>& u) {
  check_blocks(blocks, u.extent(0), u.extent(1));
  for_each_element(with_work("mylos::low_rank::place", work_of(u.size(), 1.0, 2.0 * sizeof(T))), space, u.extent(0),
                   PlaceBlocks<T>{blocks, b, u});
}

void add_low_rank_gradients(const ExecutionSpace& space, const LowRankBlocks& blocks, const ConstMatrix<float>& du,
                            const BlockGradients& db) {
  check_blocks(blocks, du.extent(0), du.extent(1));
  for_each_element(with_work("mylos::low_rank::add_gradients", work_of(du.size(), 2.0, 3.0 * sizeof(float))), space,
                   du.extent(0), AddBlocks{blocks, du, db});
}

template <class T>
void dropout(const ExecutionSpace& space, const DropoutKey& key, const DropoutRows& rows, const ConstMatrix<T>& x,
             const Matrix<T>& y, bool adds) {
  require(x.extent(0) == y.extent(0) && x.extent(1) == y.extent(1),
          fmt::format("dropout of {} x {} into {} x {}", x.extent(0), x.extent(1), y.extent(0), y.extent(1)));
  for_each_row(with_work("mylos::dropout", work_of(x.size(), 2.0, (adds ? 3.0 : 2.0) * sizeof(T))), space, x.extent(0),
               DropoutRow<T>{key, rows, x, y, adds});
}

#define MYLOS_INSTANTIATE(T)                                                                                    \
  template void place_low_rank<T>(const ExecutionSpace&, const LowRankBlocks&, const BlockValues<T>&,           \
                                  const Matrix<T>&);                                                            \
  template void dropout<T>(const ExecutionSpace&, const DropoutKey&, const DropoutRows&, const ConstMatrix<T>&, \
                           const Matrix<T>&, bool);
MYLOS_INSTANTIATE(float)
MYLOS_INSTANTIATE(bfloat16)
MYLOS_INSTANTIATE(half)
#undef MYLOS_INSTANTIATE

}  // namespace mylos
