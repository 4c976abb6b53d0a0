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

/// Assigns the gradient slots for training without recomputation. The first block of a stage writes the gradient of its
/// input to the slots of the stage before; it works in its own slots and its own results.
void assign_gradient_slots(const std::vector<std::vector<ResnetBlockShape>>& stages, ResnetSlots& slots) {
  const std::size_t kept = slots.size;
  std::size_t first_block = slots.blocks.size();  // first block of the stage after the current one
  slots.stages.resize(stages.size());
  for (std::size_t stage = stages.size(); stage-- > 0;) {
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
std::size_t largest_inner(const std::vector<std::vector<ResnetBlockShape>>& stages) {
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

ResnetSlots keep_everything(const ResnetShape& shape) {
  const auto stages = resnet_stages(shape);
  Cursor cursor;
  ResnetSlots slots;
  slots.pixels = cursor.take(shape.pixels() * shape.channels);
  slots.stem = cursor.take(result_size(stem_convolution(shape)));
  slots.stem_y = cursor.take(stem_size(shape));
  for (const auto& stage : stages) {
    for (const ResnetBlockShape& block : stage) {
      take_results(cursor, block, slots.blocks.emplace_back());
      slots.blocks.back().y = cursor.take(result_size(block.last()));
    }
  }
  slots.size = cursor.used;
  assign_gradient_slots(stages, slots);
  assign_stem_inner(shape, cursor.used, slots);
  std::size_t index = 0;
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    for (const ResnetBlockShape& block : stages[stage]) {
      slots.blocks[index++].inner.assign(block.layers.size() - 1, slots.stages[stage].second);
    }
  }
  return slots;
}

/// Returns the slots for training with recomputation: blocks keep their results y, and share the memory of the rest.
ResnetSlots keep_inputs(const ResnetShape& shape) {
  const auto stages = resnet_stages(shape);
  Cursor cursor;
  ResnetSlots slots;
  slots.pixels = cursor.take(shape.pixels() * shape.channels);
  slots.stem_y = cursor.take(stem_size(shape));
  std::size_t gradient = slots.stem_y.size;
  for (const auto& stage : stages) {
    gradient = std::max(gradient, largest_gradient(stage));
    for (const ResnetBlockShape& block : stage) {
      slots.blocks.emplace_back().y = cursor.take(result_size(block.last()));
    }
  }
  const std::size_t kept = cursor.used;
  Cursor stem{kept};
  slots.stem = stem.take(result_size(stem_convolution(shape)));
  if (has_pooling(shape)) slots.stem_inner = stem.take(slots.stem.size);
  std::size_t end = stem.used, index = 0;
  for (const auto& stage : stages) {
    for (const ResnetBlockShape& block : stage) {
      Cursor turn{kept};
      take_results(turn, block, slots.blocks[index++]);
      end = std::max(end, turn.used);
    }
  }
  cursor.used = end;
  const GradientSlots gradients{cursor.take(gradient), cursor.take(gradient)};
  slots.stages.assign(stages.size(), gradients);
  // This needs a slot of its own: both parts of a block's gradient are live while its results are recomputed.
  const ArenaSlot inner = cursor.take(largest_inner(stages));
  for (ResnetBlockSlots& block : slots.blocks) block.inner.assign(block.layers.size() - 1, inner);
  slots.size = cursor.used;
  return slots;
}

}  // namespace

ResnetSlots training_slots(const ResnetShape& shape, nn::Recompute recompute) {
  return recompute == nn::Recompute::layer ? keep_inputs(shape) : keep_everything(shape);
}

ResnetSlots prediction_slots(const ResnetShape& shape) {
  const auto stages = resnet_stages(shape);
  std::size_t largest = std::max(result_size(stem_convolution(shape)), rounded(stem_size(shape)));
  for (const auto& stage : stages) {
    for (const ResnetBlockShape& block : stage) {
      for (const ConvolutionShape& layer : block.layers) largest = std::max(largest, result_size(layer));
    }
  }
  Cursor cursor;
  ResnetSlots slots;
  slots.pixels = cursor.take(shape.pixels() * shape.channels);
  std::array<ArenaSlot, 4> turns;
  for (ArenaSlot& turn : turns) turn = cursor.take(largest);
  slots.size = cursor.used;
  slots.stem = slots.stem_inner = turns[1];
  slots.stem_y = has_pooling(shape) ? turns[0] : turns[1];
  if (!has_pooling(shape)) std::swap(turns[0], turns[1]);
  // turns[0] holds a block's input, and turns[3] its shortcut.
  for (const auto& stage : stages) {
    for (const ResnetBlockShape& shape_of_block : stage) {
      ResnetBlockSlots& block = slots.blocks.emplace_back();
      const std::size_t layers = shape_of_block.layers.size();
      for (std::size_t layer = 0; layer < layers; ++layer) block.layers.push_back(turns[1 + layer % 2]);
      block.inner.assign(block.layers.begin(), block.layers.end() - 1);
      block.shortcut = turns[3];
      block.y = block.layers.back();
      std::swap(turns[0], turns[1 + (layers - 1) % 2]);
    }
  }
  return slots;
}

std::size_t stem_pixels(const ResnetShape& shape) {
  const ConvolutionShape stem = stem_convolution(shape);
  if (!has_pooling(shape)) return stem.out_pixels();
  const PoolingShape pooling{stem.out_height(), stem.out_width()};
  return pooling.out_height() * pooling.out_width();
}

}  // namespace mylos::families
