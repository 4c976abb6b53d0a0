#include "core/kernels/updates/sgd.hpp"

#include "core/kernels/updates/weight_update.hpp"

namespace mylos {
namespace {

struct SgdElement {
  SgdSettings settings;

  KOKKOS_FORCEINLINE_FUNCTION void operator()(float scale, const float& gradient, float& weight, float& slot) const {
    const float decayed = gradient * scale + settings.weight_decay * weight;
    const float b = settings.momentum * slot + decayed;
    slot = b;
    weight -= settings.learning_rate * (settings.nesterov ? decayed + settings.momentum * b : b);
  }
};

}  // namespace

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

}  // namespace mylos
