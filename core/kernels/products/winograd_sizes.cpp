#include "core/kernels/products/winograd_sizes.hpp"

#include <algorithm>

namespace mylos {
namespace {

/// Bytes of transformed tiles per block, small enough to stay in a cache, and the minimum number of tiles that
/// amortises reading the weights, or adding to their gradient, once per block.
constexpr std::size_t tile_block_bytes = std::size_t{8} << 20, least_tiles = 256;

/// With fewer channels, the products are too narrow to gain from the transforms.
constexpr std::size_t least_channels = 8;

constexpr std::size_t position_bytes = winograd_positions * sizeof(float);

}  // namespace

WinogradTiles winograd_tiles(const Convolution& convolution) {
  const ConvolutionShape& shape = convolution.shape;
  if (convolution.pass == ConvolutionPass::input_gradient) return {shape.height, shape.width};
  return {shape.out_height(), shape.out_width()};
}

std::size_t winograd_tiles_at_once(const ConvolutionShape& shape, std::size_t tiles) {
  return std::min(tiles, std::max(least_tiles, tile_block_bytes / (position_bytes * (shape.in + shape.out))));
}

WinogradBytes winograd_workspace(const GemmProduct& product) {
  const ConvolutionShape& shape = product.convolution->shape;
  const std::size_t tiles =
      winograd_tiles_at_once(shape, batch_extent(product) * winograd_tiles(*product.convolution).tiles());
  const bool is_reversed = product.convolution->pass == ConvolutionPass::input_gradient;
  const std::size_t from = is_reversed ? shape.out : shape.in, to = is_reversed ? shape.in : shape.out;
  return {tiles * from * position_bytes, tiles * to * position_bytes, shape.out * shape.in * position_bytes};
}

bool has_winograd(const GemmProduct& product) {
  if (!product.convolution || product.input != Precision::float32) return false;
  const ConvolutionShape& shape = product.convolution->shape;
  if (shape.kernel_height != 3 || shape.kernel_width != 3 || shape.stride != 1) return false;
  // Multiplications per pair of channels with the transforms and by the definition. The transforms take time
  // themselves, so they must save at least a quarter.
  const WinogradTiles tiles = winograd_tiles(*product.convolution);
  const std::size_t transformed = winograd_positions * tiles.tiles(), direct = 9 * tiles.height * tiles.width;
  return 4 * transformed < 3 * direct && std::min(shape.in, shape.out) >= least_channels;
}

std::size_t winograd_bytes(std::span<const GemmProduct> products) {
  WinogradBytes most;
  for (const GemmProduct& product : products) {
    if (!has_winograd(product)) continue;
    const WinogradBytes bytes = winograd_workspace(product);
    most = {std::max(most.images, bytes.images), std::max(most.results, bytes.results),
            std::max(most.weights, bytes.weights)};
  }
  return most.images + most.results + most.weights;
}

}  // namespace mylos
