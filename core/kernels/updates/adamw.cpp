#include "core/kernels/updates/adamw.hpp"

#include "core/kernels/updates/weight_update.hpp"

#include <cmath>

namespace mylos {
namespace {

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

}  // namespace

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

}  // namespace mylos
