#include "train/engine/observed_state.hpp"

#include "core/kernels/chunks.hpp"
#include "core/work.hpp"

#include <algorithm>
#include <numeric>

namespace mylos::train {
namespace {

constexpr float counts = -1.0f;

std::size_t largest_state(const ParameterTable& table) {
  std::size_t largest = 0;
  for (std::size_t unit = 0; unit < table.units().size(); ++unit) {
    largest = std::max(largest, table.state_size(unit));
  }
  return largest;
}

/// Returns, for each unit, the momentum of each element of its state.
std::vector<Vector<float>> momenta(const ParameterTable& table) {
  std::vector<Vector<float>> all;
  for (std::size_t unit = 0; unit < table.units().size(); ++unit) {
    std::vector<float> values(table.state_size(unit));
    for (const ParameterTensor& tensor : table.state_tensors()) {
      if (tensor.unit != unit) continue;
      const float momentum = tensor.rule.kind == StateRule::Kind::count ? counts : tensor.rule.momentum;
      std::fill_n(values.begin() + static_cast<std::ptrdiff_t>(tensor.offset), tensor.size, momentum);
    }
    all.push_back(uninitialized<float>("mylos::ObservedState::momentum", values.size()));
    Kokkos::deep_copy(all.back(), Kokkos::View<const float*, Kokkos::LayoutRight, HostSpace, Kokkos::MemoryUnmanaged>(
                                      values.data(), values.size()));
  }
  return all;
}

/// Copies this rank's rows to their positions in the batch; sets those of other ranks to zero.
void put_in_order(const ExecutionSpace& space, const ConstMatrix<float>& observed, std::size_t first_column,
                  const ConstVector<std::size_t>& positions, const Matrix<float>& ordered) {
  Kokkos::deep_copy(space, ordered, 0.0f);
  const std::size_t columns = ordered.extent(1), elements = positions.size() * columns;
  const float* const from = observed.data();
  float* const to = ordered.data();
  const std::size_t stride = observed.extent(1);
  for_each_element(
      with_work("mylos::put_in_order", work_of(elements, 0, 8)), space, elements, KOKKOS_LAMBDA(std::size_t i) {
        const std::size_t sample = i / columns, column = i % columns;
        to[positions(sample) * columns + column] = from[sample * stride + first_column + column];
      });
}

void update_state(const ExecutionSpace& space, const ConstVector<UpdateControl>& control,
                  const ConstMatrix<float>& ordered, const ConstVector<float>& weights,
                  const ConstVector<float>& momentum, const Vector<float>& state) {
  const std::size_t samples = weights.size(), columns = ordered.extent(1);
  const float* const rows = ordered.data();
  for_each_element(
      with_work("mylos::update_state",
                work_of(columns, 2.0 * static_cast<double>(samples) + 3, 4.0 * static_cast<double>(samples) + 12)),
      space, columns, KOKKOS_LAMBDA(std::size_t i) {
        if (control(0).skips != 0) return;
        if (momentum(i) < 0.0f) {
          state(i) += 1.0f;
          return;
        }
        float mean = 0.0f;
        for (std::size_t s = 0; s < samples; ++s) mean += weights(s) * rows[s * columns + i];
        state(i) = (1.0f - momentum(i)) * state(i) + momentum(i) * mean;
      });
}

}  // namespace

ObservedState::ObservedState(const ParameterStore& store, parallel::Communicator& ranks)
    : store_(store), ranks_(ranks), width_(store.table().observed_size()), momentum_(momenta(store.table())) {}

void ObservedState::begin_step(std::size_t samples) {
  if (width_ == 0 || observed_.extent(0) >= samples + 1) return;
  observed_ = {};
  observed_ = Matrix<float>("mylos::ObservedState::observed", samples + 1, width_);
}

Matrix<float> ObservedState::rows(std::size_t first, std::size_t count) const {
  if (width_ == 0) return {};
  return {observed_.data() + first * width_, count, width_};
}

/// Copies `values` to the front of the device array, which grows if needed; returns the copy. Growing frees the arrays,
/// which waits for earlier copies from them.
template <class T>
Vector<T> ObservedState::upload(const ExecutionSpace& space, const std::string& label, std::span<const T> values,
                                Upload<T>& to) const {
  if (to.values.size() < values.size()) {
    to.values = {};
    to.values = uninitialized<T>(label, values.size());
    for (PinnedVector<T>& each : to.staged) {
      each = PinnedVector<T>(Kokkos::view_alloc(label, Kokkos::WithoutInitializing), values.size());
    }
  }
  const auto range = Kokkos::make_pair(std::size_t{0}, values.size());
  const PinnedVector<T> source = Kokkos::subview(to.staged[updates_ % slots], range);
  std::ranges::copy(values, source.data());
  const Vector<T> copy = slice(to.values, 0, values.size());
  Kokkos::deep_copy(space, copy, source);
  return copy;
}

void ObservedState::update(const ExecutionSpace& space, std::span<const double> weights,
                           std::span<const std::size_t> positions, const ConstVector<UpdateControl>& control) {
  if (width_ == 0) return;
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<float> parts;
  for (const double weight : weights) parts.push_back(static_cast<float>(weight / sum));
  ++updates_;
  const Vector<float> shares = upload<float>(space, "mylos::ObservedState::weights", parts, weights_);
  const Vector<std::size_t> own = upload(space, "mylos::ObservedState::positions", positions, positions_);
  const ParameterTable& table = store_.table();
  if (unit_rows_.size() < weights.size() * largest_state(table)) {
    unit_rows_ = {};
    unit_rows_ = Vector<float>("mylos::ObservedState::unit_rows", weights.size() * largest_state(table));
  }
  for (std::size_t unit = 0; unit < table.units().size(); ++unit) {
    if (table.state_size(unit) == 0) continue;
    update_state(space, control, exchanged(space, unit, own, weights.size()), shares, momentum_[unit],
                 store_.unit_state(unit));
  }
}

/// Returns a unit's observations of all samples in the step on every rank. The sums are exact: each value is added to
/// zeros.
Matrix<float> ObservedState::exchanged(const ExecutionSpace& space, std::size_t unit,
                                       const ConstVector<std::size_t>& positions, std::size_t batch) {
  const ParameterTable& table = store_.table();
  const Matrix<float> ordered(unit_rows_.data(), batch, table.state_size(unit));
  put_in_order(space, observed_, table.observed_offset(unit), positions, ordered);
  if (ranks_.size() > 1) {
    const parallel::Buffer values = parallel::buffer_of(Vector<float>(ordered.data(), ordered.size()));
    ranks_.all_reduce(space, values, "observations of " + table.units()[unit].name).wait(space);
  }
  return ordered;
}

std::size_t ObservedState::bytes(const ParameterTable& table, std::size_t samples, std::size_t batch) {
  if (table.observed_size() == 0) return 0;
  return ((samples + 1) * table.observed_size() + batch * largest_state(table)) * sizeof(float);
}

}  // namespace mylos::train
