#include "core/kernels/products/few_rows_product.hpp"

#include "core/base/error.hpp"
#include "core/kernels/held_rows.hpp"
#include "core/kernels/team.hpp"
#include "core/work.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <type_traits>

namespace mylos {
namespace {

/// A warp reduces without waiting at a barrier.
constexpr int threads_of_product = 32;

/// Outputs and rows summed together, so that each loaded element is multiplied several times. The bits of the result do
/// not depend on them.
constexpr int tile_outputs = 4, most_tile_rows = 4;
/// Partial sums per element on a host: a tile of one row fits in the registers of every CPU.
constexpr std::size_t product_lanes = 16;

/// Asks for the cache line of this address before it is needed. The address may lie outside of any array.
KOKKOS_FORCEINLINE_FUNCTION void prefetch([[maybe_unused]] std::uintptr_t address) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): a pointer may not be moved out of its array
  KOKKOS_IF_ON_HOST((__builtin_prefetch(reinterpret_cast<const void*>(address));))
}

/// sums[r][o] = product of row r of x and row o of the weights, both counted from the given pointers. Requests the
/// weights of the next tile meanwhile, because hardware prefetchers begin anew at each row.
template <int rows, int outputs, class T>
KOKKOS_FORCEINLINE_FUNCTION void sum_tile_on_host(std::size_t inner, const T* x, const T* weight,
                                                  float (&sums)[rows * outputs]) {
  float lane[rows][outputs][product_lanes] = {};
  const std::size_t whole = inner - inner % product_lanes;
  for (std::size_t k = 0; k < whole; k += product_lanes) {
    for (int o = 0; o < outputs; ++o) {
      prefetch(reinterpret_cast<std::uintptr_t>(weight) + ((o + outputs) * inner + k) * sizeof(T));
      for (int r = 0; r < rows; ++r) {
        MYLOS_ROLLED
        for (std::size_t j = 0; j < product_lanes; ++j) {
          lane[r][o][j] += float(x[r * inner + k + j]) * float(weight[o * inner + k + j]);
        }
      }
    }
  }
  for (int o = 0; o < outputs; ++o) {
    for (int r = 0; r < rows; ++r) {
      for (std::size_t j = 0; j < inner - whole; ++j) {
        lane[r][o][j] += float(x[r * inner + whole + j]) * float(weight[o * inner + whole + j]);
      }
      sums[r * outputs + o] = fold_sum(lane[r][o]);
    }
  }
}

/// The same on a team: each thread processes chunks of 16 bytes, one team size apart. The bits do not depend on the
/// arrays' alignment.
template <int rows, int outputs, class T, class Team>
KOKKOS_FORCEINLINE_FUNCTION void sum_tile_in_team(const Team& team, std::size_t inner, const T* x, const T* weight,
                                                  float (&sums)[rows * outputs]) {
  constexpr std::size_t width = access_bytes / sizeof(T);
  const auto stride = static_cast<std::size_t>(team.team_size()), mine = static_cast<std::size_t>(team.team_rank());
  const bool aligned = are_aligned(x, weight) && inner % width == 0;
  MYLOS_UNROLLED
  for (int i = 0; i < rows * outputs; ++i) sums[i] = 0.0f;
  for (std::size_t chunk = mine; chunk < inner / width; chunk += stride) {
    Chunk<T, width> a[rows], b[outputs];
    MYLOS_UNROLLED
    for (int o = 0; o < outputs; ++o) b[o].load_any(weight + o * inner + chunk * width, aligned);
    MYLOS_UNROLLED
    for (int r = 0; r < rows; ++r) a[r].load_any(x + r * inner + chunk * width, aligned);
    MYLOS_UNROLLED
    for (int i = 0; i < rows * outputs; ++i) {
      MYLOS_UNROLLED
      for (unsigned j = 0; j < width; ++j) sums[i] += float(a[i / outputs][j]) * float(b[i % outputs][j]);
    }
  }
  for (std::size_t k = inner - inner % width + mine; k < inner; k += stride) {
    for (int i = 0; i < rows * outputs; ++i) {
      sums[i] += float(x[i / outputs * inner + k]) * float(weight[i % outputs * inner + k]);
    }
  }
  add_over_team<threads_of_product>(team, sums);
}

template <class T, class Out>
struct FewRowsBlock {
  ConstMatrix<T> x, weight;
  Matrix<Out> y;
  ConstVector<T> bias;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t block) const {
    const std::size_t first = block * tile_outputs, outputs = weight.extent(0);
    if (first + tile_outputs <= outputs) return all_rows<tile_outputs>(team, first);
    for (std::size_t output = first; output < outputs; ++output) all_rows<1>(team, output);
  }

 private:
  /// The weights of the outputs stay in the L1 cache across tiles of rows.
  template <int outputs, class Team>
  KOKKOS_FORCEINLINE_FUNCTION void all_rows(const Team& team, std::size_t output) const {
    const std::size_t rows = x.extent(0);
    std::size_t row = 0;
    for (; row + most_tile_rows <= rows; row += most_tile_rows) some_rows<most_tile_rows, outputs>(team, row, output);
    if (row + 2 <= rows) {
      some_rows<2, outputs>(team, row, output);
      row += 2;
    }
    if (row < rows) some_rows<1, outputs>(team, row, output);
  }

  template <int rows, int outputs, class Team>
  KOKKOS_FORCEINLINE_FUNCTION void some_rows(const Team& team, std::size_t row, std::size_t output) const {
    const std::size_t inner = x.extent(1), columns = y.extent(1);
    float sums[rows * outputs];
    const T *const from = x.data() + row * inner, *const by = weight.data() + output * inner;
    if constexpr (std::is_same_v<Team, HostTeam>) {
      sum_tile_on_host<rows, outputs>(inner, from, by, sums);
    } else {
      sum_tile_in_team<rows, outputs>(team, inner, from, by, sums);
    }
    if (bias.size() > 0) {
      for (int i = 0; i < rows * outputs; ++i) sums[i] += float(bias(output + i % outputs));
    }
    Out* const out = y.data() + row * columns + output;
    for (int i = 0; i < rows * outputs; ++i) out[i / outputs * columns + i % outputs] = Out(sums[i]);
  }
};

}  // namespace

template <class T, class Out>
void few_rows_product(const ExecutionSpace& space, const ConstMatrix<T>& x, const ConstMatrix<T>& weight,
                      const Matrix<Out>& y, const ConstVector<T>& bias) {
  require(x.extent(0) == y.extent(0) && weight.extent(0) == y.extent(1) && x.extent(1) == weight.extent(1),
          fmt::format("few_rows_product: {} x {} by the transpose of {} x {} is not {} x {}", x.extent(0), x.extent(1),
                      weight.extent(0), weight.extent(1), y.extent(0), y.extent(1)));
  require(bias.size() == 0 || bias.size() == y.extent(1),
          fmt::format("few_rows_product: a bias of {} for {} columns", bias.size(), y.extent(1)));
  const Work work = work_of(weight.size(), 2.0 * static_cast<double>(x.extent(0)), sizeof(T)) +
                    work_of(x.size(), 0.0, sizeof(T)) + work_of(y.size(), 0.0, sizeof(Out));
  for_each_row(with_work("mylos::few_rows_product", work), space, (y.extent(1) + tile_outputs - 1) / tile_outputs,
               FewRowsBlock<T, Out>{x, weight, y, bias},
               {.threads = team_size_for(space, std::size_t{threads_of_product})});
}

#define MYLOS_INSTANTIATE(T, Out)                                                                             \
  template void few_rows_product<T, Out>(const ExecutionSpace&, const ConstMatrix<T>&, const ConstMatrix<T>&, \
                                         const Matrix<Out>&, const ConstVector<T>&);
MYLOS_INSTANTIATE(float, float)
MYLOS_INSTANTIATE(bfloat16, bfloat16)
MYLOS_INSTANTIATE(bfloat16, float)
MYLOS_INSTANTIATE(half, half)
MYLOS_INSTANTIATE(half, float)
#undef MYLOS_INSTANTIATE

}  // namespace mylos
