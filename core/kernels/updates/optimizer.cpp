#include "core/kernels/updates/optimizer.hpp"

#include "core/base/error.hpp"
#include "core/kernels/chunks.hpp"
#include "core/work.hpp"

#include <fmt/format.h>

#include <cmath>

namespace mylos {
namespace {

struct LossScaleSelection {
  Candidates<float> candidates;
  ConstVector<UpdateControl> control;
  Vector<float> loss_scale;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team&, std::size_t) const {
    loss_scale(0) = candidates.select(control(0).skips != 0);
  }
};

struct Decision {
  DecisionSettings settings;
  ConstVector<float> loss_scale;
  ConstVector<double> squares, losses;
  Vector<UpdateControl> control;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t) const {
    const UpdateControl last = control(0);  // threads read it before the barrier of the sum, and replace it after
    const double* const loss = losses.data();
    const double sum = team_sum<double>(team, losses.size(), [=](std::size_t i) { return loss[i]; });
    const double scale = loss_scale(0), norm = Kokkos::sqrt(squares(0)) / scale;
    const bool is_loss_finite = Kokkos::isfinite(sum / settings.weight);
    const bool is_finite = is_loss_finite && Kokkos::isfinite(norm);
    const bool can_recover = is_loss_finite && scale > settings.least_loss_scale;
    const bool stopped = last.stopped != 0 || !(is_finite || can_recover);
    // The constant is from PyTorch's clip_grad_norm_.
    const double factor = settings.clip > 0.0 ? settings.clip / (norm + 1e-6) : 1.0;
    const double clip = factor < 1.0 ? factor : 1.0;
    control(0) = {static_cast<double>(static_cast<float>(clip / scale)), stopped || !is_finite ? 1 : 0, last.skips,
                  stopped ? 1 : 0};
  }
};

struct SquaredBlock {
  ConstVector<float> x;
  std::size_t first;  ///< first element of x in the unit
  Vector<double> sums;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t block) const {
    const std::size_t block_begin = (first / norm_block + block) * norm_block, end_of_x = first + x.size();
    const std::size_t begin = block_begin < first ? first : block_begin;
    const std::size_t end = block_begin + norm_block < end_of_x ? block_begin + norm_block : end_of_x;
    const float* const in = x.data() + (begin - first);
    const double sum = team_map_sum<double>(
        team, end - begin,
        [](float element) {
          const double value = element;
          return value * value;
        },
        in);
    sums(block) = sum;
  }
};

/// Threads of a team that has the device for itself.
constexpr int threads_of_only_team = 1024;

struct SumInOrder {
  ConstVector<double> values;
  Vector<double> sum;

  void operator()(const HostTeam&, std::size_t) const {
    double all = 0.0;
    for (std::size_t i = 0; i < values.size(); ++i) all += values(i);
    sum(0) = all;
  }
  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t) const {
    constexpr std::size_t ahead = 8;  // loads that do not wait for each other
    const auto stride = static_cast<std::size_t>(team.team_size());
    double sums[1] = {};
    for (auto first = static_cast<std::size_t>(team.team_rank()); first < values.size(); first += ahead * stride) {
      double read[ahead];
      MYLOS_UNROLLED
      for (std::size_t k = 0; k < ahead; ++k) {
        const std::size_t i = first + k * stride;
        read[k] = i < values.size() ? values(i) : 0.0;
      }
      MYLOS_UNROLLED
      for (std::size_t k = 0; k < ahead; ++k) sums[0] += read[k];
    }
    add_over_team<threads_of_only_team>(team, sums);
    sum(0) = sums[0];
  }
};

}  // namespace

void select_loss_scale(const ExecutionSpace& space, const Candidates<float>& candidates,
                       const ConstVector<UpdateControl>& control, const Vector<float>& loss_scale) {
  require(control.size() == 1 && loss_scale.size() == 1,
          fmt::format("loss scale: {} controls of an update, room for {}", control.size(), loss_scale.size()));
  for_each_row(with_work("mylos::optimizer::select_loss_scale", work_of(1, 0.0, sizeof(float))), space, 1,
               LossScaleSelection{candidates, control, loss_scale}, {.threads = team_size_for(space, 1)});
}

void decide_update(const ExecutionSpace& space, const DecisionSettings& settings, const ConstVector<float>& loss_scale,
                   const ConstVector<double>& squares, const ConstVector<double>& losses,
                   const Vector<UpdateControl>& control) {
  require(loss_scale.size() == 1 && squares.size() == 1 && control.size() == 1,
          fmt::format("decision on an update: {} loss scales, {} sums of squares, room for {}", loss_scale.size(),
                      squares.size(), control.size()));
  for_each_row(with_work("mylos::optimizer::decide", work_of(losses.size(), 1.0, sizeof(double))), space, 1,
               Decision{settings, loss_scale, squares, losses, control},
               {.threads = team_size_for(space, losses.size())});
}

void block_squared_sums(const ExecutionSpace& space, const ConstVector<float>& x, std::size_t begin,
                        const Vector<double>& sums) {
  const std::size_t blocks = norm_blocks(begin, begin + x.size());
  require(sums.size() == blocks,
          fmt::format("squared sums of {} elements: {} blocks, room for {}", x.size(), blocks, sums.size()));
  for_each_row(with_work("mylos::optimizer::squared_sums", work_of(x.size(), 2.0, sizeof(float))), space, blocks,
               SquaredBlock{x, begin, sums}, {.threads = team_size_for(space, 1)});
}

void sum_in_order(const ExecutionSpace& space, const ConstVector<double>& values, const Vector<double>& sum) {
  require(sum.size() == 1, fmt::format("sum of {} values: room for {} sums", values.size(), sum.size()));
  for_each_row<Kokkos::LaunchBounds<threads_of_only_team, 1>>(
      with_work("mylos::optimizer::sum_in_order", work_of(values.size(), 1.0, sizeof(double))), space, 1,
      SumInOrder{values, sum}, {.threads = runs_on_host ? team_size(space) : threads_of_only_team});
}

}  // namespace mylos
