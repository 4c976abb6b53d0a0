#pragma once

#include "core/base/error.hpp"
#include "core/kernels/chunks.hpp"
#include "core/kernels/updates/optimizer.hpp"
#include "core/work.hpp"

#include <fmt/format.h>

#include <string>
#include <string_view>

/// The launch that all optimizers share. It is elementwise, and a control scales or skips it. An optimizer's file gives
/// the function of one element.
namespace mylos {

/// Errors: std::invalid_argument if the numbers of gradients, weights and elements of a slot differ.
inline void check_sizes(std::string_view what, std::size_t gradient, std::size_t value, std::size_t slot) {
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

}  // namespace mylos
