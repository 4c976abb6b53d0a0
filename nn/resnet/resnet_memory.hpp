#pragma once

#include "nn/recompute.hpp"
#include "nn/resnet/resnet_shape.hpp"

#include <vector>

/// Where the arrays of a pass lie: slots in one piece of memory, in elements of an image. A batch of T images has T
/// times as much of each, so that a smaller batch never needs more than a larger one.
///
/// In training the results of convolutions and of blocks are kept. The backward pass of a stage works in memory of the
/// stages behind it, which is free again then; the forward pass does so too, before it is taken.
namespace mylos::nn {

struct ArenaSlot {
  std::size_t offset = 0, size = 0;

  std::size_t end() const { return offset + size; }
};

struct ResnetBlockSlots {
  std::vector<ArenaSlot> layers;  ///< results of the convolutions
  ArenaSlot shortcut;
  std::vector<ArenaSlot> inner;  ///< what stands between two convolutions in the forward pass
  ArenaSlot y;
};

/// The gradient of a block's result, in two parts.
struct GradientSlots {
  ArenaSlot first, second;
};

struct ResnetSlots {
  ArenaSlot pixels, stem;
  ArenaSlot stem_inner;  ///< of the ImageNet stem: what is pooled, and its gradient
  ArenaSlot stem_y;
  std::vector<ResnetBlockSlots> blocks;
  std::vector<GradientSlots> stages;  ///< in training
  std::size_t size = 0;               ///< elements of an image, of all slots
};

ResnetSlots training_slots(const ResnetShape& shape, Recompute recompute);
/// Results are normalised where they are, and blocks take turns in four slots.
ResnetSlots prediction_slots(const ResnetShape& shape);

/// Pixels of an image behind the stem.
std::size_t stem_pixels(const ResnetShape& shape);

}  // namespace mylos::nn
