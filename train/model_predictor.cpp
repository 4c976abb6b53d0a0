#include "train/model_predictor.hpp"

namespace mylos::train {
namespace {

using HostView = Kokkos::View<float*, Kokkos::LayoutRight, HostSpace, Kokkos::MemoryUnmanaged>;

}  // namespace

ModelPredictor::ModelPredictor(const ExecutionSpace& space, const nn::Model& model, const ParameterStore& store,
                               UnitSchedule& schedule, const Gemm& gemm, Arena& arena, std::size_t largest)
    : model_(model), pass_{space, gemm, store, schedule, arena}, losses_("mylos::ModelPredictor::losses", largest) {}

std::span<const float> ModelPredictor::predict(const Batch& batch, std::span<float> losses) {
  const Vector<float> batch_losses = slice(losses_, 0, losses.size());
  const Matrix<float> outputs = model_.predict(pass_, batch, batch_losses);
  const Vector<float> flat(outputs.data(), outputs.size());
  if (outputs_.size() < flat.size()) outputs_ = HostVector<float>("mylos::ModelPredictor::outputs", flat.size());
  const HostView target(outputs_.data(), flat.size());
  Kokkos::deep_copy(pass_.space, target, flat);
  Kokkos::deep_copy(pass_.space, HostView(losses.data(), losses.size()), batch_losses);
  pass_.space.fence("mylos::ModelPredictor::predict");
  return {target.data(), target.size()};
}

}  // namespace mylos::train
