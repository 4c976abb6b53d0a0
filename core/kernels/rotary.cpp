#include "core/kernels/rotary.hpp"

#include "core/base/error.hpp"
#include "core/kernels/chunks.hpp"
#include "core/work.hpp"

#include <fmt/format.h>

namespace mylos {
namespace {

/// Approximate operations of a sine and a cosine: their polynomials and the reduction of the angle.
constexpr double sine_and_cosine_flops = 40.0;

struct RotaryTableRow {
  ConstVector<std::int32_t> positions;
  RotaryFrequencies frequencies;
  Matrix<float> table;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t row) const {
    const auto position = static_cast<float>(positions(row));
    const std::size_t pairs = frequencies.pairs;
    const float scale = frequencies.scale;
    const float* const radians = frequencies.radians;
    float* const out = table.data() + row * 2 * pairs;
    team_for(team, pairs, [=](std::size_t i) {
      const float angle = position * radians[i];
      out[i] = scale * Kokkos::cos(angle);
      out[pairs + i] = scale * Kokkos::sin(angle);
    });
  }
};

template <class T>
struct RotateRow {
  ConstMatrix<float> table;
  std::size_t heads;
  float direction;  ///< 1, or -1 to negate the sines
  Matrix<T> x;

  /// Processes one head after the other, so that the loop over pairs vectorises.
  KOKKOS_INLINE_FUNCTION void operator()(const HostTeam& team, std::size_t row) const {
    const std::size_t size = table.extent(1), pairs = size / 2;
    const float* const KOKKOS_RESTRICT of_row = table.data() + row * size;
    const float factor = direction;
    for (std::size_t head = 0; head < heads; ++head) {
      T* const data = x.data() + row * x.extent(1) + head * size;
      team_for(team, pairs, [=](std::size_t i) {
        const float cosine = of_row[i], sine = factor * of_row[pairs + i];
        const float a = float(data[i]), b = float(data[pairs + i]);
        data[i] = T(a * cosine - b * sine);
        data[pairs + i] = T(b * cosine + a * sine);
      });
    }
  }

  /// Elements per access on a device. A head must consist of two halves of whole accesses.
  static constexpr unsigned width = access_bytes / sizeof(T);

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t row) const {
    if (table.extent(1) % (2 * width) == 0 && x.extent(1) % width == 0 && are_aligned(table.data(), x.data())) {
      turn_chunks<width>(team, row);
    } else {
      turn_chunks<1>(team, row);
    }
  }

  /// A thread turns the same adjacent pairs of every `slices`-th head, and loads their sines and cosines once. Indices
  /// within a row have 32 bits, because a device divides 64-bit numbers in 25 instructions or more.
  template <unsigned chunk, class Team>
  KOKKOS_FORCEINLINE_FUNCTION void turn_chunks(const Team& team, std::size_t row) const {
    constexpr unsigned at_once = 2;
    const auto size = static_cast<unsigned>(table.extent(1)), all = static_cast<unsigned>(heads), pairs = size / 2;
    const auto threads = static_cast<unsigned>(team.team_size()), chunks = pairs / chunk;
    const unsigned slices = threads < chunks ? 1 : threads / chunks;
    for (auto item = static_cast<unsigned>(team.team_rank()); item < slices * chunks; item += threads) {
      const unsigned pair = item % chunks * chunk;
      Chunk<float, chunk> cosine, sine;
      cosine.load(table.data() + row * size + pair);
      sine.load(table.data() + row * size + pairs + pair);
      T* const data = x.data() + row * x.extent(1) + pair;
      for (unsigned head = item / chunks; head < all; head += at_once * slices) {
        Chunk<T, chunk> first[at_once] = {}, second[at_once] = {};
        MYLOS_UNROLLED
        for (unsigned k = 0; k < at_once; ++k) {
          if (head + k * slices >= all) continue;
          first[k].load(data + (head + k * slices) * size);
          second[k].load(data + (head + k * slices) * size + pairs);
        }
        MYLOS_UNROLLED
        for (unsigned k = 0; k < at_once; ++k) {
          if (head + k * slices >= all) continue;
          MYLOS_UNROLLED
          for (unsigned j = 0; j < chunk; ++j) {
            const float c = cosine[j], s = direction * sine[j], a = float(first[k][j]), b = float(second[k][j]);
            first[k].set(j, T(a * c - b * s));
            second[k].set(j, T(b * c + a * s));
          }
          first[k].store(data + (head + k * slices) * size);
          second[k].store(data + (head + k * slices) * size + pairs);
        }
      }
    }
  }
};

}  // namespace

void rotary_table(const ExecutionSpace& space, const ConstVector<std::int32_t>& positions,
                  const RotaryFrequencies& frequencies, const Matrix<float>& table) {
  require(positions.size() == table.extent(0) && table.extent(1) == 2 * frequencies.pairs &&
              2 * frequencies.pairs <= largest_rotary_head,
          fmt::format("rotary embeddings: {} positions and {} pairs (at most {}) for a table of {} x {}",
                      positions.size(), frequencies.pairs, largest_rotary_head / 2, table.extent(0), table.extent(1)));
  const Work work = work_of(table.size() / 2, 1.0 + sine_and_cosine_flops, 2.0 * sizeof(float)) +
                    work_of(positions.size(), 0.0, sizeof(std::int32_t));
  for_each_row(with_work("mylos::rotary::table", work), space, table.extent(0),
               RotaryTableRow{positions, frequencies, table}, {.threads = team_size_for(space, frequencies.pairs)});
}

template <class T>
void rotate(const ExecutionSpace& space, const ConstMatrix<float>& table, std::size_t heads, Rotation rotation,
            const Matrix<T>& x) {
  const std::size_t turned = heads * table.extent(1);
  require(table.extent(0) == x.extent(0) && table.extent(1) % 2 == 0 && turned <= x.extent(1),
          fmt::format("rotary embeddings: a table of {} x {} and {} heads for {} x {}", table.extent(0),
                      table.extent(1), heads, x.extent(0), x.extent(1)));
  const Work work = work_of(x.extent(0) * turned, 3.0, 2.0 * sizeof(T)) + work_of(table.size(), 0.0, sizeof(float));
  for_each_row(with_work("mylos::rotary::rotate", work), space, x.extent(0),
               RotateRow<T>{table, heads, rotation == Rotation::forward ? 1.0f : -1.0f, x},
               {.threads = team_size_for(space, turned / (4 * RotateRow<T>::width))});
}

#define MYLOS_INSTANTIATE(T) \
  template void rotate<T>(const ExecutionSpace&, const ConstMatrix<float>&, std::size_t, Rotation, const Matrix<T>&);
MYLOS_INSTANTIATE(float)
MYLOS_INSTANTIATE(bfloat16)
MYLOS_INSTANTIATE(half)
#undef MYLOS_INSTANTIATE

}  // namespace mylos
