#include "core/kernels/rotary.hpp"

#include "core/base/error.hpp"
#include "core/kernels/team.hpp"
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
    const float* const radians = frequencies.radians;
    float* const out = table.data() + row * 2 * pairs;
    team_for(team, pairs, [=](std::size_t i) {
      const float angle = position * radians[i];
      out[i] = Kokkos::cos(angle);
      out[pairs + i] = Kokkos::sin(angle);
    });
  }
};

template <class T>
struct RotateRow {
  ConstMatrix<float> table;
  std::size_t heads;
  float direction;  ///< 1, or -1 to negate the sines
  Matrix<T> x;

  KOKKOS_FORCEINLINE_FUNCTION static void turn(const float* table, std::size_t pairs, float direction, std::size_t i,
                                               T* head) {
    const float cosine = table[i], sine = direction * table[pairs + i];
    const float a = float(head[i]), b = float(head[pairs + i]);
    head[i] = T(a * cosine - b * sine);
    head[pairs + i] = T(b * cosine + a * sine);
  }

  /// Processes one head after the other, so that the loop over pairs vectorises.
  KOKKOS_INLINE_FUNCTION void operator()(const HostTeam& team, std::size_t row) const {
    const std::size_t size = table.extent(1), pairs = size / 2;
    const float* const KOKKOS_RESTRICT of_row = table.data() + row * size;
    const float factor = direction;
    for (std::size_t head = 0; head < heads; ++head) {
      T* const data = x.data() + row * x.extent(1) + head * size;
      team_for(team, pairs, [=](std::size_t i) { turn(of_row, pairs, factor, i, data); });
    }
  }

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t row) const {
    const std::size_t size = table.extent(1), pairs = size / 2;
    const float* const of_row = table.data() + row * size;
    T* const data = x.data() + row * x.extent(1);
    const float factor = direction;
    team_for(team, heads * pairs,
             [=](std::size_t i) { turn(of_row, pairs, factor, i % pairs, data + i / pairs * size); });
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
               {.threads = team_size_for(space, turned / 2)});
}

#define MYLOS_INSTANTIATE(T) \
  template void rotate<T>(const ExecutionSpace&, const ConstMatrix<float>&, std::size_t, Rotation, const Matrix<T>&);
MYLOS_INSTANTIATE(float)
MYLOS_INSTANTIATE(bfloat16)
MYLOS_INSTANTIATE(half)
#undef MYLOS_INSTANTIATE

}  // namespace mylos
