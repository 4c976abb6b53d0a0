#include "parallel/sharding/all_reduced_gradients.hpp"

#include "core/kernels/activation.hpp"
#include "core/trace.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace mylos::parallel {

AllReducedGradients::AllReducedGradients(const ModeSettings& settings, Mesh& mesh, ParameterStore& store)
    : mesh_(mesh), store_(store), splits_(settings.kind != ModeKind::replicated), tree_sums_(settings.tree_sums) {
  if (store.purpose() == ParameterStore::Purpose::inference) return;
  for (std::size_t unit = 0; tree_sums_ && unit < store.table().units().size(); ++unit) {
    partial_.emplace_back("mylos::all_reduced_gradients::partial", store.capacity(unit), settings.micro_batches);
  }
  if (!settings.bfloat16_gradients) return;
  for (std::size_t position = 0; position < rounded_positions; ++position) {
    rounded_.push_back(
        {uninitialized<bfloat16>("mylos::all_reduced_gradients::rounded", store.largest_capacity()), 0, false, {}});
  }
}

AllReducedGradients::~AllReducedGradients() {
  for (const Event& sum : sums_) sum.wait_for_its_end();
  for (const Rounded& position : rounded_) position.summed.wait_for_its_end();
}

void AllReducedGradients::begin_step(const ExecutionSpace& space) {
  space_ = space;
  if (!tree_sums_) store_.begin_gradients(space);
}

void AllReducedGradients::begin_micro_batch(bool last) {
  is_last_ = last;
  if (tree_sums_) store_.begin_gradients(space_);
}

void AllReducedGradients::ready(std::size_t unit) {
  if (tree_sums_) {
    store_.finish_gradients(space_, unit);
    partial_[unit].add(space_, store_.gradient_memory(unit), store_.gradient_memory(unit));
  }
  if (!is_last_) return;
  store_.finish_gradients(space_, unit);
  if (!rounded_.empty()) return reduce_rounded(unit);
  sums_.push_back(reduce(unit, buffer_of(store_.gradient_memory(unit))));
}

Vector<float> AllReducedGradients::part_of(std::size_t unit) const {
  const Vector<float> gradients = store_.gradient_memory(unit);
  const std::size_t rank = mesh_.shard().rank(), part = gradients.size() / mesh_.shard().size();
  return slice(gradients, rank * part, (rank + 1) * part);
}

Event AllReducedGradients::reduce(std::size_t unit, const Buffer& all) {
  const std::string label = fmt::format("gradients of {}", store_.table().units()[unit].name);
  if (splits_) return mesh_.shard().reduce_scatter(space_, all, buffer_of(part_of(unit)), label);
  return mesh_.replicate().all_reduce(space_, all, label);
}

void AllReducedGradients::reduce_rounded(std::size_t unit) {
  Rounded& position = rounded_[turn_++ % rounded_.size()];
  take_back(position);
  const Vector<float> gradients = store_.gradient_memory(unit);
  const Vector<bfloat16> rounded = slice(position.memory, 0, gradients.size());
  convert<float, bfloat16>(space_, gradients, rounded);
  position.unit = unit;
  position.summing = true;
  position.summed = reduce(unit, buffer_of(rounded));
}

void AllReducedGradients::take_back(Rounded& position) {
  if (!position.summing) return;
  position.summed.wait(space_);
  position.summing = false;
  if (splits_) return;  // the sum of the slice is float and already in place
  const Vector<float> gradients = store_.gradient_memory(position.unit);
  convert<bfloat16, float>(space_, slice(position.memory, 0, gradients.size()), gradients);
}

void AllReducedGradients::finish(const ExecutionSpace& space) {
  const TraceSpan span(TraceLane::waiting, "sums of", "gradients");
  for (const Event& sum : sums_) sum.wait(space);
  sums_.clear();
  for (Rounded& position : rounded_) take_back(position);
}

}  // namespace mylos::parallel
