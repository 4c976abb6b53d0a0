#include "core/kernels/optimizer.hpp"

#include "core/base/error.hpp"
#include "core/kernels/chunks.hpp"
#include "core/work.hpp"

#include <fmt/format.h>

#include <cmath>

namespace mylos {
namespace {

void check_sizes(std::string_view what, std::size_t gradient, std::size_t value, std::size_t slot) {
  require(gradient == value && slot == value,
          fmt::format("{}: {} gradients for {} values and {} elements of state", what, gradient, value, slot));
}

/// The body of an update with its scale.
template <class Body>
struct ScaledBody {
  Body body;
  float scale;

  template <class... Elements>
  KOKKOS_FORCEINLINE_FUNCTION void operator()(Elements&... elements) const {
    body(scale, elements...);
  }
};

template <class Body, class... Arrays>
struct ControlledUpdate {
  Candidates<Body> body;
  ConstVector<UpdateControl> control;
  std::size_t n;
  ArrayList<Arrays...> arrays;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t block) const {
    const UpdateControl now = control(0);
    if (now.skips != 0) return;
    const std::size_t begin = block * flat_block, count = n - begin < flat_block ? n - begin : flat_block;
    const ScaledBody<Body> each{body.select(now.after_skip != 0), static_cast<float>(now.gradient_scale)};
    arrays.apply([&](const Arrays&... all) { team_map(team, count, each, from_element(all, begin)...); });
  }
};

/// Calls body(scale, element of each array ...) like for_each_element, unless the update is skipped.
template <class Body, class... Arrays>
void update_elements(const std::string& label, const ExecutionSpace& space, const ConstVector<UpdateControl>& control,
                     std::size_t n, const Candidates<Body>& body, const Arrays&... arrays) {
  for_each_row(label, space, (n + flat_block - 1) / flat_block,
               ControlledUpdate<Body, Arrays...>{body, control, n, ArrayList<Arrays...>(arrays...)});
}

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

/// The update of one weight, as in PyTorch: decay before the update, bias corrections in the step and in the
/// denominator.
struct AdamWElement {
  float keep, step, inverse_root, beta1, beta2, rest1, rest2, epsilon;

  KOKKOS_FORCEINLINE_FUNCTION void operator()(float scale, const float& gradient, float& weight, float& mean,
                                              float& square) const {
    const float scaled = gradient * scale;
    const float m = beta1 * mean + rest1 * scaled;
    const float v = beta2 * square + rest2 * scaled * scaled;
    mean = m;
    square = v;
    weight = keep * weight - step * m / (Kokkos::sqrt(v) * inverse_root + epsilon);
  }
};

struct SgdElement {
  SgdSettings settings;

  KOKKOS_FORCEINLINE_FUNCTION void operator()(float scale, const float& gradient, float& weight, float& slot) const {
    const float decayed = gradient * scale + settings.weight_decay * weight;
    const float b = settings.momentum * slot + decayed;
    slot = b;
    weight -= settings.learning_rate * (settings.nesterov ? decayed + settings.momentum * b : b);
  }
};

/// An update that also rounds the weight.
template <class Update>
struct WithRounding {
  Update update;

  template <class T, class... Slots>
  KOKKOS_FORCEINLINE_FUNCTION void operator()(float scale, T& rounded, const float& gradient, float& weight,
                                              Slots&... slots) const {
    update(scale, gradient, weight, slots...);
    rounded = T(weight);
  }
};

/// Updates n weights with `flops` operations each. `slots` are the arrays of the optimizer's state.
template <class Update, class... Slots>
void update_weights(const char* name, double flops, const ExecutionSpace& space,
                    const ConstVector<UpdateControl>& control, std::size_t n, const Candidates<Update>& update,
                    const RoundedValues& rounded, const float* gradient, float* weights, Slots*... slots) {
  const double bytes = (3.0 + 2.0 * sizeof...(Slots)) * sizeof(float);
  if (rounded.values == nullptr) {
    return update_elements(with_work(name, work_of(n, flops, bytes)), space, control, n, update, gradient, weights,
                           slots...);
  }
  const auto round = [&]<class T>(T) {
    update_elements(with_work(name, work_of(n, flops, bytes + sizeof(T))), space, control, n,
                    update.map([](const Update& each) { return WithRounding<Update>{each}; }),
                    written(static_cast<T*>(rounded.values)), gradient, weights, slots...);
  };
  rounded.precision == Precision::bfloat16 ? round(bfloat16()) : round(half());
}

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

void adamw_update(const ExecutionSpace& space, const Candidates<AdamWSettings>& settings,
                  const ConstVector<UpdateControl>& control, const ConstVector<float>& gradient,
                  const Vector<float>& value, const Vector<float>& first_moment, const Vector<float>& second_moment,
                  const RoundedValues& rounded) {
  check_sizes("AdamW", gradient.size(), value.size(), first_moment.size());
  check_sizes("AdamW", gradient.size(), value.size(), second_moment.size());
  const Candidates<AdamWElement> update = settings.map([](const AdamWSettings& s) {
    return AdamWElement{.keep = 1.0f - s.learning_rate * s.weight_decay,
                        .step = static_cast<float>(s.learning_rate / s.bias_correction1),
                        .inverse_root = static_cast<float>(1.0 / std::sqrt(s.bias_correction2)),
                        .beta1 = static_cast<float>(s.beta1),
                        .beta2 = static_cast<float>(s.beta2),
                        .rest1 = static_cast<float>(1.0 - s.beta1),
                        .rest2 = static_cast<float>(1.0 - s.beta2),
                        .epsilon = s.epsilon};
  });
  update_weights("mylos::optimizer::adamw", 15.0, space, control, value.size(), update, rounded, gradient.data(),
                 value.data(), first_moment.data(), second_moment.data());
}

void adamw_revert(const ExecutionSpace& space, const AdamWSettings& settings, const ConstVector<float>& first_moment,
                  const ConstVector<float>& second_moment, const Vector<float>& value) {
  check_sizes("AdamW", first_moment.size(), value.size(), second_moment.size());
  const float keep = 1.0f - settings.learning_rate * settings.weight_decay;
  if (keep <= 0.0f) return;
  const float *const first = first_moment.data(), *const second = second_moment.data();
  float* const w = value.data();
  const auto step = static_cast<float>(settings.learning_rate / settings.bias_correction1);
  const auto inverse_root = static_cast<float>(1.0 / std::sqrt(settings.bias_correction2));
  const float epsilon = settings.epsilon;
  for_each_element(
      with_work("mylos::optimizer::adamw_revert", work_of(value.size(), 7.0, 4.0 * sizeof(float))), space, value.size(),
      KOKKOS_LAMBDA(const float& mean, const float& square, float& weight) {
        weight = (weight + step * mean / (Kokkos::sqrt(square) * inverse_root + epsilon)) / keep;
      },
      first, second, w);
}

void sgd_update(const ExecutionSpace& space, const Candidates<SgdSettings>& settings,
                const ConstVector<UpdateControl>& control, const ConstVector<float>& gradient,
                const Vector<float>& value, const Vector<float>& momentum, const RoundedValues& rounded) {
  check_sizes("SGD", gradient.size(), value.size(), momentum.size());
  const Candidates<SgdElement> update = settings.map([](const SgdSettings& s) { return SgdElement{s}; });
  update_weights("mylos::optimizer::sgd", settings.after_update.nesterov ? 9.0 : 7.0, space, control, value.size(),
                 update, rounded, gradient.data(), value.data(), momentum.data());
}

void sgd_revert(const ExecutionSpace& space, const SgdSettings& settings, const ConstVector<float>& momentum,
                const Vector<float>& value) {
  check_sizes("SGD", momentum.size(), value.size(), momentum.size());
  require(!settings.nesterov, "SGD: an update with Nesterov momentum cannot be undone without its gradient");
  const float learning_rate = settings.learning_rate;
  const float* const slot = momentum.data();
  float* const w = value.data();
  for_each_element(
      with_work("mylos::optimizer::sgd_revert", work_of(value.size(), 2.0, 3.0 * sizeof(float))), space, value.size(),
      KOKKOS_LAMBDA(const float& slot_of_weight, float& weight) { weight += learning_rate * slot_of_weight; }, slot, w);
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
