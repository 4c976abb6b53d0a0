#pragma once

#include "core/kernels/gemm_product.hpp"

#include <span>

/// Which convolutions are computed by Winograd's transforms (core/kernels/winograd_convolution.hpp), and in what
/// memory.
namespace mylos {

inline constexpr std::size_t winograd_positions = 16;  ///< elements of a transformed tile

/// The tiles of 2 x 2 pixels that cover each of some images of height x width, line by line.
struct WinogradTiles {
  std::size_t height = 0, width = 0;

  std::size_t columns() const { return (width + 1) / 2; }
  std::size_t tiles() const { return (height + 1) / 2 * columns(); }
};

/// The tiles of an image of the result.
WinogradTiles winograd_tiles(const Convolution& convolution);

/// Tiles that are transformed and multiplied at once, of all that there are.
std::size_t winograd_tiles_at_once(const ConvolutionShape& shape, std::size_t tiles);

/// Bytes of the workspaces for a convolution: a block of transformed images, a block of transformed results or of their
/// gradients, and the transformed weights or their gradients.
struct WinogradBytes {
  std::size_t images = 0, results = 0, weights = 0;
};
WinogradBytes winograd_workspace(const GemmProduct& product);

/// Whether the product is a convolution of 3 x 3 and stride 1 in float that gains by the transforms: it has channels
/// enough, and images of which tiles do not stand out too far.
bool has_winograd(const GemmProduct& product);

/// Bytes of workspace when all of these that have transforms were computed.
std::size_t winograd_bytes(std::span<const GemmProduct> products);

}  // namespace mylos
