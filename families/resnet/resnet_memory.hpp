#pragma once

#include "families/resnet/resnet_shape.hpp"
#include "nn/recompute.hpp"

#include <vector>

/// Memory layout of a pass: slots within one allocation, in elements per image. A batch of T images needs T times as
/// much of each slot, so a smaller batch never needs more memory than a larger one.
///
/// In training, the results of convolutions and blocks are kept. The backward pass of a stage uses memory of the stages
/// after it, which is free by then. The forward pass uses the same memory before those stages run.
namespace mylos::families {

struct ArenaSlot {
  std::size_t offset = 0, size = 0;

  std::size_t end() const { return offset + size; }
};

struct ResnetBlockSlots {
  std::vector<ArenaSlot> layers;  ///< results of the convolutions
  ArenaSlot shortcut;
  std::vector<ArenaSlot> inner;  ///< arrays between two convolutions in the forward pass
  ArenaSlot y;
};

/// The gradient of a block's result, in two parts.
struct GradientSlots {
  ArenaSlot first, second;
};

struct ResnetSlots {
  ArenaSlot pixels, stem;
  ArenaSlot stem_inner;  ///< ImageNet stem only: the input of the pooling, and its gradient
  ArenaSlot stem_y;
  std::vector<ResnetBlockSlots> blocks;
  std::vector<GradientSlots> stages;  ///< one per stage; only those that a backward pass reaches
  std::size_t size = 0;               ///< total elements per image
};

/// Returns the slots for training the units from `first_trained` on, of the stem, the blocks and the head. Those below
/// reuse slots as in prediction; the last of them leaves its result where it is kept.
ResnetSlots training_slots(const ResnetShape& shape, nn::Recompute recompute, std::size_t first_trained = 0);
/// Returns the slots for passes without a backward pass: results are normalised in place, and all blocks reuse the same
/// four slots.
ResnetSlots prediction_slots(const ResnetShape& shape);

/// Returns the pixels per image after the stem.
std::size_t stem_pixels(const ResnetShape& shape);

}  // namespace mylos::families
