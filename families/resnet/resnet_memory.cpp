#include "families/resnet/resnet_memory.hpp"

#include "core/kernels/pooling.hpp"

#include <algorithm>
#include <array>

namespace mylos::families {
namespace {

/// Alignment of slots, in elements.
constexpr std::size_t position_multiple = 64;

std::size_t rounded(std::size_t size) { return (size + position_multiple - 1) / position_multiple * position_multiple; }

std::size_t result_size(const ConvolutionShape& shape) { return rounded(shape.out_pixels() * shape.out); }

/// Allocates consecutive slots.
struct Cursor {
  std::size_t used = 0;

  ArenaSlot take(std::size_t size) {
    used += rounded(size);
    return {used - rounded(size), rounded(size)};
  }
};

bool has_pooling(const ResnetShape& shape) { return shape.stem == ImageStem::imagenet; }

std::size_t stem_size(const ResnetShape& shape) { return stem_pixels(shape) * shape.embedding; }

void take_results(Cursor& cursor, const ResnetBlockShape& shape, ResnetBlockSlots& block) {
  for (const ConvolutionShape& layer : shape.layers) block.layers.push_back(cursor.take(result_size(layer)));
  if (shape.shortcut) block.shortcut = cursor.take(result_size(*shape.shortcut));
}

/// Elements of the largest gradient in a stage's blocks.
std::size_t largest_gradient(const std::vector<ResnetBlockShape>& blocks) {
  std::size_t largest = 0;
  for (const ResnetBlockShape& block : blocks) {
    for (const ConvolutionShape& layer : block.layers) largest = std::max(largest, result_size(layer));
  }
  return largest;
}

/// The result of a unit: the stem, or block unit - 1.
ArenaSlot& result_of(std::size_t unit, ResnetSlots& slots) {
  return unit == 0 ? slots.stem_y : slots.blocks[unit - 1].y;
}

using Stages = std::vector<std::vector<ResnetBlockShape>>;

/// The blocks of all stages, in order.
std::vector<ResnetBlockShape> blocks_of(const Stages& stages) {
  std::vector<ResnetBlockShape> blocks;
  for (const auto& stage : stages) blocks.insert(blocks.end(), stage.begin(), stage.end());
  return blocks;
}

/// The stage that holds the gradient of the first trained unit's input, or of the stem's result.
std::size_t lowest_stage(const Stages& stages, std::size_t first_trained) {
  std::size_t stage = 0;
  std::size_t end = 1 + stages[0].size();
  while (end < first_trained) end += stages[++stage].size();
  return stage;
}

/// The first unit whose result is kept: it is the input of the first trained one.
std::size_t kept_from(std::size_t first_trained) { return std::max<std::size_t>(first_trained, 1) - 1; }

/// Assigns the slots of the first `units` units, which keep nothing, from `begin` on. The stem alone needs one, with a
/// result elsewhere.
void reuse_slots(const ResnetShape& shape, std::size_t units, std::size_t begin, ResnetSlots& slots) {
  std::vector<ResnetBlockShape> blocks = blocks_of(resnet_stages(shape));
  blocks.resize(units - 1);
  std::size_t largest = std::max(result_size(stem_convolution(shape)), rounded(stem_size(shape)));
  for (const ResnetBlockShape& block : blocks) {
    for (const ConvolutionShape& layer : block.layers) largest = std::max(largest, result_size(layer));
  }
  Cursor cursor{begin};
  slots.pixels = cursor.take(shape.pixels() * shape.channels);
  std::array<ArenaSlot, 4> turns;
  turns.fill(cursor.take(largest));
  for (std::size_t turn = 1; turn < turns.size() && !blocks.empty(); ++turn) turns[turn] = cursor.take(largest);
  slots.size = std::max(slots.size, cursor.used);
  slots.stem = slots.stem_inner = turns[1];
  slots.stem_y = has_pooling(shape) ? turns[0] : turns[1];
  if (!has_pooling(shape)) std::swap(turns[0], turns[1]);
  // turns[0] holds a block's input, and turns[3] its shortcut.
  for (std::size_t index = 0; index < blocks.size(); ++index) {
    ResnetBlockSlots& block = slots.blocks[index];
    const std::size_t layers = blocks[index].layers.size();
    for (std::size_t layer = 0; layer < layers; ++layer) block.layers.push_back(turns[1 + layer % 2]);
    block.inner.assign(block.layers.begin(), block.layers.end() - 1);
    block.shortcut = turns[3];
    block.y = block.layers.back();
    std::swap(turns[0], turns[1 + (layers - 1) % 2]);
  }
}

/// Units below the first trained one run before all memory but their result is needed.
void reuse_slots_below(const ResnetShape& shape, std::size_t first_trained, ResnetSlots& slots) {
  const ArenaSlot kept = result_of(first_trained - 1, slots);
  reuse_slots(shape, first_trained, kept.end(), slots);
  result_of(first_trained - 1, slots) = kept;
}

/// Assigns the gradient slots for training without recomputation. The first block of a stage writes the gradient of its
/// input to the slots of the stage before; it works in its own slots and its own results.
void assign_gradient_slots(const Stages& stages, std::size_t lowest, ResnetSlots& slots) {
  const std::size_t kept = slots.size;
  std::size_t first_block = slots.blocks.size();  // first block of the stage after the current one
  slots.stages.resize(stages.size());
  for (std::size_t stage = stages.size(); stage-- > lowest;) {
    std::size_t size = largest_gradient(stages[stage]);
    if (stage == 0) size = std::max(size, slots.stem_y.size);
    const bool is_last = stage + 1 == stages.size();
    const std::size_t begin = is_last ? kept : slots.blocks[first_block].y.end();
    const std::size_t end = is_last ? kept : std::min(kept, slots.stages[stage + 1].first.offset);
    const bool fits = end >= begin + 2 * size;
    const std::size_t offset = fits ? end - 2 * size : slots.size;
    slots.stages[stage] = {{offset, size}, {offset + size, size}};
    slots.size = std::max(slots.size, offset + 2 * size);
    first_block -= stages[stage].size();
  }
}

/// Assigns the stem's inner array, which is needed before and after all blocks.
void assign_stem_inner(const ResnetShape& shape, std::size_t kept, ResnetSlots& slots) {
  if (!has_pooling(shape)) return;
  const std::size_t size = slots.stem.size, begin = slots.stem_y.end();
  const bool fits = begin + size <= std::min(kept, slots.stages.front().first.offset);
  slots.stem_inner = {fits ? begin : slots.size, size};
  slots.size = std::max(slots.size, slots.stem_inner.end());
}

/// Elements of the largest array between two convolutions of a block.
std::size_t largest_inner(const Stages& stages) {
  std::size_t largest = 0;
  for (const auto& stage : stages) {
    for (const ResnetBlockShape& block : stage) {
      for (const ConvolutionShape& layer : block.layers) {
        if (&layer != &block.last()) largest = std::max(largest, result_size(layer));
      }
    }
  }
  return largest;
}

ResnetSlots keep_everything(const ResnetShape& shape, std::size_t first_trained) {
  const auto stages = resnet_stages(shape);
  const std::vector<ResnetBlockShape> blocks = blocks_of(stages);
  Cursor cursor;
  ResnetSlots slots;
  slots.blocks.resize(blocks.size());
  if (first_trained == 0) {
    slots.pixels = cursor.take(shape.pixels() * shape.channels);
    slots.stem = cursor.take(result_size(stem_convolution(shape)));
  }
  for (std::size_t unit = kept_from(first_trained); unit <= blocks.size(); ++unit) {
    if (unit >= first_trained && unit > 0) take_results(cursor, blocks[unit - 1], slots.blocks[unit - 1]);
    result_of(unit, slots) = cursor.take(unit == 0 ? stem_size(shape) : result_size(blocks[unit - 1].last()));
  }
  slots.size = cursor.used;
  assign_gradient_slots(stages, lowest_stage(stages, first_trained), slots);
  if (first_trained == 0) assign_stem_inner(shape, cursor.used, slots);
  std::size_t index = 0;
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    for (const ResnetBlockShape& block : stages[stage]) {
      if (++index < first_trained) continue;
      slots.blocks[index - 1].inner.assign(block.layers.size() - 1, slots.stages[stage].second);
    }
  }
  return slots;
}

/// Returns the slots for training with recomputation: blocks keep their results y, and share the memory of the rest.
ResnetSlots keep_inputs(const ResnetShape& shape, std::size_t first_trained) {
  const auto stages = resnet_stages(shape);
  const std::vector<ResnetBlockShape> blocks = blocks_of(stages);
  const std::size_t first_block = kept_from(first_trained);
  Cursor cursor;
  ResnetSlots slots;
  slots.blocks.resize(blocks.size());
  if (first_trained == 0) slots.pixels = cursor.take(shape.pixels() * shape.channels);
  for (std::size_t unit = kept_from(first_trained); unit <= blocks.size(); ++unit) {
    result_of(unit, slots) = cursor.take(unit == 0 ? stem_size(shape) : result_size(blocks[unit - 1].last()));
  }
  std::size_t gradient = slots.stem_y.size;
  for (std::size_t stage = lowest_stage(stages, first_trained); stage < stages.size(); ++stage) {
    gradient = std::max(gradient, largest_gradient(stages[stage]));
  }
  const std::size_t kept = cursor.used;
  if (first_trained == 0) {
    Cursor stem{kept};
    slots.stem = stem.take(result_size(stem_convolution(shape)));
    if (has_pooling(shape)) slots.stem_inner = stem.take(slots.stem.size);
    cursor.used = stem.used;
  }
  for (std::size_t block = first_block; block < blocks.size(); ++block) {
    Cursor turn{kept};
    take_results(turn, blocks[block], slots.blocks[block]);
    cursor.used = std::max(cursor.used, turn.used);
  }
  const GradientSlots gradients{cursor.take(gradient), cursor.take(gradient)};
  slots.stages.assign(stages.size(), gradients);
  // This needs a slot of its own: both parts of a block's gradient are live while its results are recomputed.
  const ArenaSlot inner = cursor.take(largest_inner(stages));
  for (std::size_t block = first_block; block < blocks.size(); ++block) {
    slots.blocks[block].inner.assign(blocks[block].layers.size() - 1, inner);
  }
  slots.size = cursor.used;
  return slots;
}

}  // namespace

ResnetSlots prediction_slots(const ResnetShape& shape) {
  ResnetSlots slots;
  slots.blocks.resize(blocks_of(resnet_stages(shape)).size());
  reuse_slots(shape, slots.blocks.size() + 1, 0, slots);
  return slots;
}

ResnetSlots training_slots(const ResnetShape& shape, nn::Recompute recompute, std::size_t first_trained) {
  const auto keep = recompute == nn::Recompute::layer ? keep_inputs : keep_everything;
  ResnetSlots all = keep(shape, 0);
  if (first_trained == 0) return all;
  const bool has_backward = first_trained <= all.blocks.size();
  ResnetSlots fewer = has_backward ? keep(shape, first_trained) : prediction_slots(shape);
  if (has_backward) reuse_slots_below(shape, first_trained, fewer);
  return fewer.size < all.size ? fewer : all;  // of a few small blocks, all may take less
}

std::size_t stem_pixels(const ResnetShape& shape) {
  const ConvolutionShape stem = stem_convolution(shape);
  if (!has_pooling(shape)) return stem.out_pixels();
  const PoolingShape pooling{stem.out_height(), stem.out_width()};
  return pooling.out_height() * pooling.out_width();
}

}  // namespace mylos::families
