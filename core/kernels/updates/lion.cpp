#include "core/kernels/updates/lion.hpp"

#include "core/kernels/updates/weight_update.hpp"

namespace mylos {
namespace {

/// The update of one weight: decay before the update, as in the authors' program.
struct LionElement {
  float keep, step, beta1, beta2, rest1, rest2;

  KOKKOS_FORCEINLINE_FUNCTION void operator()(float scale, const float& gradient, float& weight, float& slot) const {
    const float scaled = gradient * scale, mean = slot;
    const float direction = beta1 * mean + rest1 * scaled;
    slot = beta2 * mean + rest2 * scaled;
    const float sign = direction > 0.0f ? 1.0f : direction < 0.0f ? -1.0f : 0.0f;
    weight = keep * weight - step * sign;
  }
};

}  // namespace

void lion_update(const ExecutionSpace& space, const Candidates<LionSettings>& settings,
                 const ConstVector<UpdateControl>& control, const ConstVector<float>& gradient,
                 const Vector<float>& value, const Vector<float>& moment, const RoundedValues& rounded) {
  check_sizes("Lion", gradient.size(), value.size(), moment.size());
  const Candidates<LionElement> update = settings.map([](const LionSettings& s) {
    return LionElement{.keep = 1.0f - s.learning_rate * s.weight_decay,
                       .step = s.learning_rate,
                       .beta1 = static_cast<float>(s.beta1),
                       .beta2 = static_cast<float>(s.beta2),
                       .rest1 = static_cast<float>(1.0 - s.beta1),
                       .rest2 = static_cast<float>(1.0 - s.beta2)};
  });
  update_weights("mylos::optimizer::lion", 11.0, space, control, value.size(), update, rounded, gradient.data(),
                 value.data(), moment.data());
}

}  // namespace mylos
