#include "nn/head.hpp"

#include "core/kernels/team.hpp"
#include "core/work.hpp"

namespace mylos::nn {
namespace {

struct SampleSum {
  ConstVector<std::size_t> starts;
  ConstVector<float> row_losses;
  Vector<float> losses;
  ConstVector<float> row_hits;
  Vector<float> hits;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t sample) const {
    const std::size_t begin = starts(sample), count = starts(sample + 1) - begin;
    const auto sum_of = [&](const ConstVector<float>& rows) {
      const float* const in = rows.data() + begin;
      return team_sum(team, count, [=](std::size_t i) { return in[i]; });
    };
    losses(sample) = sum_of(row_losses);
    if (hits.extent(0) > 0) hits(sample) = sum_of(row_hits);
  }
};

}  // namespace

void sum_sample_losses(const ExecutionSpace& space, const ConstVector<std::size_t>& starts,
                       const ConstVector<float>& row_losses, const Vector<float>& losses,
                       const ConstVector<float>& row_hits, const Vector<float>& hits) {
  for_each_row(with_work("mylos::vocabulary_loss::samples", work_of(row_losses.size(), 1.0, sizeof(float))), space,
               losses.size(), SampleSum{starts, row_losses, losses, row_hits, hits});
}

}  // namespace mylos::nn
