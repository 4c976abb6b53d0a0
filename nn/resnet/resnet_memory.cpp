#include "nn/resnet/resnet_memory.hpp"

#include "core/kernels/pooling.hpp"

#include <algorithm>
#include <array>

namespace mylos::nn {
namespace {

/// Elements that places begin at multiples of.
constexpr std::size_t place_multiple = 64;

std::size_t rounded(std::size_t size) { return (size + place_multiple - 1) / place_multiple * place_multiple; }

std::size_t result_size(const ConvolutionShape& shape) { return rounded(shape.out_pixels() * shape.out); }

/// Takes places one after the other.
struct Cursor {
  std::size_t used = 0;

  Place take(std::size_t size) {
    used += rounded(size);
    return {used - rounded(size), rounded(size)};
  }
};

bool has_pooling(const ResnetShape& shape) { return shape.stem == ResnetShape::Stem::imagenet; }

std::size_t stem_size(const ResnetShape& shape) { return stem_pixels(shape) * shape.embedding; }

void take_results(Cursor& cursor, const ResnetBlockShape& shape, ResnetBlockPlaces& block) {
  for (const ConvolutionShape& layer : shape.layers) block.layers.push_back(cursor.take(result_size(layer)));
  if (shape.shortcut) block.shortcut = cursor.take(result_size(*shape.shortcut));
}

/// Elements of the largest gradient that a stage's blocks work with.
std::size_t largest_gradient(const std::vector<ResnetBlockShape>& blocks) {
  std::size_t largest = 0;
  for (const ResnetBlockShape& block : blocks) {
    for (const ConvolutionShape& layer : block.layers) largest = std::max(largest, result_size(layer));
  }
  return largest;
}

/// Places of gradients for training with everything kept. While a stage's first block computes the gradient of its
/// input, which is in the places of the stage before, it works in its own places and its own results.
void place_gradients(const std::vector<std::vector<ResnetBlockShape>>& stages, ResnetPlaces& places) {
  const std::size_t kept = places.size;
  std::size_t first_block = places.blocks.size();  // of the stage behind the one that is placed
  places.stages.resize(stages.size());
  for (std::size_t stage = stages.size(); stage-- > 0;) {
    std::size_t size = largest_gradient(stages[stage]);
    if (stage == 0) size = std::max(size, places.stem_y.size);
    const bool is_last = stage + 1 == stages.size();
    const std::size_t begin = is_last ? kept : places.blocks[first_block].y.end();
    const std::size_t end = is_last ? kept : std::min(kept, places.stages[stage + 1].first.offset);
    const bool fits = end >= begin + 2 * size;
    const std::size_t offset = fits ? end - 2 * size : places.size;
    places.stages[stage] = {{offset, size}, {offset + size, size}};
    places.size = std::max(places.size, offset + 2 * size);
    first_block -= stages[stage].size();
  }
}

/// The stem's inner array is needed before and after all blocks.
void place_stem_inner(const ResnetShape& shape, std::size_t kept, ResnetPlaces& places) {
  if (!has_pooling(shape)) return;
  const std::size_t size = places.stem.size, begin = places.stem_y.end();
  const bool fits = begin + size <= std::min(kept, places.stages.front().first.offset);
  places.stem_inner = {fits ? begin : places.size, size};
  places.size = std::max(places.size, places.stem_inner.end());
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

ResnetPlaces keep_everything(const ResnetShape& shape) {
  const auto stages = resnet_stages(shape);
  Cursor cursor;
  ResnetPlaces places;
  places.pixels = cursor.take(shape.pixels() * shape.channels);
  places.stem = cursor.take(result_size(stem_convolution(shape)));
  places.stem_y = cursor.take(stem_size(shape));
  for (const auto& stage : stages) {
    for (const ResnetBlockShape& block : stage) {
      take_results(cursor, block, places.blocks.emplace_back());
      places.blocks.back().y = cursor.take(result_size(block.last()));
    }
  }
  places.size = cursor.used;
  place_gradients(stages, places);
  place_stem_inner(shape, cursor.used, places);
  std::size_t index = 0;
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    for (const ResnetBlockShape& block : stages[stage]) {
      places.blocks[index++].inner.assign(block.layers.size() - 1, places.stages[stage].second);
    }
  }
  return places;
}

/// Blocks keep their results y and take turns in the rest.
ResnetPlaces keep_inputs(const ResnetShape& shape) {
  const auto stages = resnet_stages(shape);
  Cursor cursor;
  ResnetPlaces places;
  places.pixels = cursor.take(shape.pixels() * shape.channels);
  places.stem_y = cursor.take(stem_size(shape));
  std::size_t gradient = places.stem_y.size;
  for (const auto& stage : stages) {
    gradient = std::max(gradient, largest_gradient(stage));
    for (const ResnetBlockShape& block : stage) {
      places.blocks.emplace_back().y = cursor.take(result_size(block.last()));
    }
  }
  const std::size_t kept = cursor.used;
  Cursor stem{kept};
  places.stem = stem.take(result_size(stem_convolution(shape)));
  if (has_pooling(shape)) places.stem_inner = stem.take(places.stem.size);
  std::size_t end = stem.used, index = 0;
  for (const auto& stage : stages) {
    for (const ResnetBlockShape& block : stage) {
      Cursor turn{kept};
      take_results(turn, block, places.blocks[index++]);
      end = std::max(end, turn.used);
    }
  }
  cursor.used = end;
  const GradientPlaces gradients{cursor.take(gradient), cursor.take(gradient)};
  places.stages.assign(stages.size(), gradients);
  // When a block's results are computed again, both parts of its gradient are there.
  const Place inner = cursor.take(largest_inner(stages));
  for (ResnetBlockPlaces& block : places.blocks) block.inner.assign(block.layers.size() - 1, inner);
  places.size = cursor.used;
  return places;
}

}  // namespace

ResnetPlaces training_places(const ResnetShape& shape, Recompute recompute) {
  return recompute == Recompute::layer ? keep_inputs(shape) : keep_everything(shape);
}

ResnetPlaces prediction_places(const ResnetShape& shape) {
  const auto stages = resnet_stages(shape);
  std::size_t largest = std::max(result_size(stem_convolution(shape)), rounded(stem_size(shape)));
  for (const auto& stage : stages) {
    for (const ResnetBlockShape& block : stage) {
      for (const ConvolutionShape& layer : block.layers) largest = std::max(largest, result_size(layer));
    }
  }
  Cursor cursor;
  ResnetPlaces places;
  places.pixels = cursor.take(shape.pixels() * shape.channels);
  std::array<Place, 4> turns;
  for (Place& turn : turns) turn = cursor.take(largest);
  places.size = cursor.used;
  places.stem = places.stem_inner = turns[1];
  places.stem_y = has_pooling(shape) ? turns[0] : turns[1];
  if (!has_pooling(shape)) std::swap(turns[0], turns[1]);
  // The first of them holds what a block reads, the last one its shortcut.
  for (const auto& stage : stages) {
    for (const ResnetBlockShape& shape_of_block : stage) {
      ResnetBlockPlaces& block = places.blocks.emplace_back();
      const std::size_t layers = shape_of_block.layers.size();
      for (std::size_t layer = 0; layer < layers; ++layer) block.layers.push_back(turns[1 + layer % 2]);
      block.inner.assign(block.layers.begin(), block.layers.end() - 1);
      block.shortcut = turns[3];
      block.y = block.layers.back();
      std::swap(turns[0], turns[1 + (layers - 1) % 2]);
    }
  }
  return places;
}

std::size_t stem_pixels(const ResnetShape& shape) {
  const ConvolutionShape stem = stem_convolution(shape);
  if (!has_pooling(shape)) return stem.out_pixels();
  const PoolingShape pooling{stem.out_height(), stem.out_width()};
  return pooling.out_height() * pooling.out_width();
}

}  // namespace mylos::nn
