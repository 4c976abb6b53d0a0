#include "parallel/sharding/whole_gradients.hpp"

#include "core/kernels/activation.hpp"
#include "core/trace.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace mylos::parallel {

WholeGradients::WholeGradients(const ModeSettings& settings, Mesh& mesh, ParameterStore& store)
    : mesh_(mesh), store_(store), splits_(settings.kind != ModeKind::replicated), tree_sums_(settings.tree_sums) {
  if (store.purpose() == ParameterStore::Purpose::inference) return;
  for (std::size_t unit = 0; tree_sums_ && unit < store.table().units().size(); ++unit) {
    partial_.emplace_back("mylos::whole_gradients::partial", store.capacity(unit), settings.micro_batches);
  }
  if (!settings.bfloat16_gradients) return;
  for (std::size_t place = 0; place < rounded_places; ++place) {
    rounded_.push_back(
        {uninitialized<bfloat16>("mylos::whole_gradients::rounded", store.largest_capacity()), 0, false, {}});
  }
}

WholeGradients::~WholeGradients() {
  for (const Event& sum : sums_) sum.wait_for_its_end();
  for (const Rounded& place : rounded_) place.summed.wait_for_its_end();
}

void WholeGradients::begin_step(const ExecutionSpace& space) {
  space_ = space;
  if (!tree_sums_) store_.begin_gradients(space);
}

void WholeGradients::begin_micro_batch(bool last) {
  is_last_ = last;
  if (tree_sums_) store_.begin_gradients(space_);
}

void WholeGradients::ready(std::size_t unit) {
  if (tree_sums_) {
    store_.finish_gradients(space_, unit);
    partial_[unit].add(space_, store_.gradient_memory(unit), store_.gradient_memory(unit));
  }
  if (!is_last_) return;
  store_.finish_gradients(space_, unit);
  if (!rounded_.empty()) return reduce_rounded(unit);
  sums_.push_back(reduce(unit, buffer_of(store_.gradient_memory(unit))));
}

Vector<float> WholeGradients::part_of(std::size_t unit) const {
  const Vector<float> gradients = store_.gradient_memory(unit);
  const std::size_t rank = mesh_.shard().rank(), part = gradients.size() / mesh_.shard().size();
  return slice(gradients, rank * part, (rank + 1) * part);
}

Event WholeGradients::reduce(std::size_t unit, const Buffer& all) {
  const std::string label = fmt::format("gradients of {}", store_.table().units()[unit].name);
  if (splits_) return mesh_.shard().reduce_scatter(space_, all, buffer_of(part_of(unit)), label);
  return mesh_.replicate().all_reduce(space_, all, label);
}

void WholeGradients::reduce_rounded(std::size_t unit) {
  Rounded& place = rounded_[turn_++ % rounded_.size()];
  take_back(place);
  const Vector<float> gradients = store_.gradient_memory(unit);
  const Vector<bfloat16> rounded = slice(place.memory, 0, gradients.size());
  convert<float, bfloat16>(space_, gradients, rounded);
  place.unit = unit;
  place.summing = true;
  place.summed = reduce(unit, buffer_of(rounded));
}

void WholeGradients::take_back(Rounded& place) {
  if (!place.summing) return;
  place.summed.wait(space_);
  place.summing = false;
  if (splits_) return;  // the sum of the part is float, and in its place
  const Vector<float> gradients = store_.gradient_memory(place.unit);
  convert<bfloat16, float>(space_, slice(place.memory, 0, gradients.size()), gradients);
}

void WholeGradients::finish(const ExecutionSpace& space) {
  const TraceSpan span(TraceLane::waiting, "sums of", "gradients");
  for (const Event& sum : sums_) sum.wait(space);
  sums_.clear();
  for (Rounded& place : rounded_) take_back(place);
}

}  // namespace mylos::parallel
