#include "parallel/sharding/all_reduced_gradients.hpp"

#include "core/kernels/activation.hpp"
#include "core/trace.hpp"
#include "parallel/sharding/unit_buffer.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>

namespace mylos::parallel {

AllReducedGradients::AllReducedGradients(const ModeSettings& settings, Mesh& mesh, ParameterStore& store)
    : mesh_(mesh),
      store_(store),
      splits_(settings.kind != ModeKind::replicated),
      tree_sums_(settings.tree_sums),
      batch_(summing_ranks().least_sum_bytes(ElementType::float32),
             [this](std::span<const std::size_t> units) { reduce_in_place(units); }) {
  if (store.purpose() == ParameterStore::Purpose::inference) return;
  for (std::size_t unit = 0; tree_sums_ && unit < store.table().units().size(); ++unit) {
    partial_.emplace_back("mylos::all_reduced_gradients::partial", store.gradient_capacity(unit),
                          settings.micro_batches);
  }
  if (!settings.bfloat16_gradients) return;
  for (std::size_t position = 0; position < rounded_positions; ++position) {
    rounded_.push_back(
        {uninitialized<bfloat16>("mylos::all_reduced_gradients::rounded", store.largest_gradient_capacity()),
         0,
         false,
         {}});
  }
}

AllReducedGradients::~AllReducedGradients() {
  for (const Event& sum : sums_) sum.wait_for_its_end();
  for (const Rounded& position : rounded_) position.summed.wait_for_its_end();
}

void AllReducedGradients::begin_step(const ExecutionSpace& space) {
  space_ = space;
  ready_ = 0;
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
  batch_.add(unit, store_.gradient_memory(unit).size() * sizeof(float));
  if (++ready_ == store_.table().trained_units()) batch_.flush();
}

Vector<float> AllReducedGradients::part_of(std::size_t unit) const {
  const Vector<float> gradients = store_.gradient_memory(unit);
  const std::size_t rank = mesh_.shard().rank(), part = gradients.size() / mesh_.shard().size();
  return slice(gradients, rank * part, (rank + 1) * part);
}

Communicator& AllReducedGradients::summing_ranks() const { return splits_ ? mesh_.shard() : mesh_.replicate(); }

/// Starts to sum the gradients of these units together.
Event AllReducedGradients::reduce(std::span<const Sent> units) {
  std::vector<NamedArray> wholes;
  std::vector<NamedParts> parts;
  for (const Sent& each : units) {
    std::string label = fmt::format("gradients of {}", store_.table().units()[each.unit].name);
    if (splits_) {
      parts.push_back({buffer_of(part_of(each.unit)), without_padding(each.all, store_, each.unit), std::move(label)});
    } else {
      wholes.push_back({each.all, std::move(label)});
    }
  }
  return splits_ ? summing_ranks().reduce_scatter_coalesced(space_, parts)
                 : summing_ranks().all_reduce_coalesced(space_, wholes);
}

void AllReducedGradients::reduce_in_place(std::span<const std::size_t> units) {
  std::vector<Sent> sent;
  for (const std::size_t unit : units) sent.push_back({unit, buffer_of(store_.gradient_memory(unit))});
  sums_.push_back(reduce(sent));
}

/// These units are not collected: bfloat16 is summed one array after another, and each unit that waits would need
/// another buffer.
void AllReducedGradients::reduce_rounded(std::size_t unit) {
  Rounded& position = rounded_[turn_++ % rounded_.size()];
  take_back(position);
  const Vector<float> gradients = store_.gradient_memory(unit);
  const Vector<bfloat16> rounded = slice(position.memory, 0, gradients.size());
  convert<float, bfloat16>(space_, gradients, rounded);
  position.unit = unit;
  position.summing = true;
  const Sent sent{unit, buffer_of(rounded)};
  position.summed = reduce(std::span(&sent, 1));
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
  batch_.flush();
  const TraceSpan span(TraceLane::waiting, "sums of", "gradients");
  for (const Event& sum : sums_) sum.wait(space);
  sums_.clear();
  for (Rounded& position : rounded_) take_back(position);
}

}  // namespace mylos::parallel
