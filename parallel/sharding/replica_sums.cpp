#include "parallel/sharding/replica_sums.hpp"

#include "core/base/error.hpp"
#include "core/kernels/activation.hpp"

#include <fmt/format.h>

#include <utility>

namespace mylos::parallel {

ReplicaSums::ReplicaSums(const ModeSettings& settings, Communicator& replicas, const ParameterTable& table,
                         std::span<const ParameterSlice> slices)
    : replicas_(replicas), rounds_(settings.bfloat16_gradients && replicas.size() > 1) {
  for (const ParameterSlice& slice : slices) {
    sums_.push_back({fmt::format("gradients of {} over all groups", table.units()[slice.unit].name), slice.gradient});
  }
}

ReplicaSums::~ReplicaSums() {
  for (const Sum& sum : sums_) sum.summed.wait_for_its_end();
}

void ReplicaSums::begin(const ExecutionSpace& space, std::size_t unit, const Vector<bfloat16>& rounded) {
  Sum& sum = sums_[unit];
  Buffer data = buffer_of(sum.slice);
  if (rounds_) {
    convert<float, bfloat16>(space, sum.slice, rounded);
    data = buffer_of(rounded);
    sum.rounded = rounded;
  }
  sum.summed = replicas_.all_reduce(space, data, sum.what);
  sum.under_way = true;
  ++begun_;
}

void ReplicaSums::finish(const ExecutionSpace& space, std::size_t unit) {
  Sum& sum = sums_[unit];
  if (!std::exchange(sum.under_way, false)) return;
  // Release the event, which may hold a copy of the slice on the host.
  std::exchange(sum.summed, {}).wait(space);
  if (rounds_) convert<bfloat16, float>(space, sum.rounded, sum.slice);
}

void ReplicaSums::finish(const ExecutionSpace& space) {
  require(begun_ == sums_.size(),
          fmt::format("gradients: {} of {} units were ready in the last micro-batch", begun_, sums_.size()));
  begun_ = 0;
  for (std::size_t unit = 0; unit < sums_.size(); ++unit) finish(space, unit);
}

}  // namespace mylos::parallel
