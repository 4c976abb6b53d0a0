#include "parallel/sharding/replica_sums.hpp"

#include "core/base/error.hpp"
#include "core/kernels/activation.hpp"

#include <fmt/format.h>

#include <utility>

namespace mylos::parallel {

ReplicaSums::ReplicaSums(const ModeSettings& settings, Communicator& replicas, const ParameterTable& table,
                         std::span<const ParameterSlice> slices)
    : replicas_(replicas),
      trained_(table.trained_units()),
      rounds_(settings.bfloat16_gradients && replicas.size() > 1),
      batch_(replicas.least_sum_bytes(rounds_ ? ElementType::bfloat16 : ElementType::float32),
             [this](std::span<const std::size_t> units) { reduce(units); }) {
  for (const ParameterSlice& slice : slices) {
    sums_.push_back({fmt::format("gradients of {} over all groups", table.units()[slice.unit].name), slice.gradient});
  }
}

ReplicaSums::~ReplicaSums() {
  for (const Sum& sum : sums_) sum.summed.wait_for_its_end();
}

void ReplicaSums::begin(const ExecutionSpace& space, std::size_t unit, const Vector<bfloat16>& rounded) {
  Sum& sum = sums_[unit];
  space_ = space;
  if (rounds_) {
    convert<float, bfloat16>(space, sum.slice, rounded);
    sum.rounded = rounded;
  }
  sum.under_way = true;
  batch_.add(unit, sum.slice.size() * (rounds_ ? sizeof(bfloat16) : sizeof(float)));
  if (++begun_ == trained_) batch_.flush();
}

void ReplicaSums::reduce(std::span<const std::size_t> units) {
  std::vector<NamedArray> arrays;
  for (const std::size_t unit : units) {
    const Sum& sum = sums_[unit];
    arrays.push_back({rounds_ ? buffer_of(sum.rounded) : buffer_of(sum.slice), sum.what});
  }
  const Event summed = replicas_.all_reduce_coalesced(space_, arrays);
  for (const std::size_t unit : units) sums_[unit].summed = summed;
}

void ReplicaSums::finish(const ExecutionSpace& space, std::size_t unit) {
  Sum& sum = sums_[unit];
  if (!std::exchange(sum.under_way, false)) return;
  batch_.flush();  // the sum may not have begun
  // Release the event, which may hold a copy of the slice on the host.
  std::exchange(sum.summed, {}).wait(space);
  if (rounds_) convert<bfloat16, float>(space, sum.rounded, sum.slice);
}

void ReplicaSums::finish(const ExecutionSpace& space) {
  require(begun_ == trained_,
          fmt::format("gradients: {} of {} units were ready in the last micro-batch", begun_, trained_));
  begun_ = 0;
  for (std::size_t unit = 0; unit < sums_.size(); ++unit) finish(space, unit);
}

}  // namespace mylos::parallel
