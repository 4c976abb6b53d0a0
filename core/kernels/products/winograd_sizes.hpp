#pragma once

#include "core/kernels/products/gemm_product.hpp"

#include <span>

/// The convolutions that use Winograd's transforms (core/kernels/products/winograd_convolution.hpp), and the memory
/// they need.
namespace mylos {

inline constexpr std::size_t winograd_positions = 16;  ///< elements per transformed tile

/// The tiles of 2 x 2 pixels that cover images of height x width, in row-major order.
struct WinogradTiles {
  std::size_t height = 0, width = 0;

  std::size_t columns() const { return (width + 1) / 2; }
  std::size_t tiles() const { return (height + 1) / 2 * columns(); }
};

/// Returns the tiles of an output image.
WinogradTiles winograd_tiles(const Convolution& convolution);

/// Returns the number of tiles, out of `tiles`, that are transformed and multiplied at once.
std::size_t winograd_tiles_at_once(const ConvolutionShape& shape, std::size_t tiles);

/// Bytes of workspace for a convolution: a block of transformed images, a block of transformed results or their
/// gradients, and the transformed weights or their gradients.
struct WinogradBytes {
  std::size_t images = 0, results = 0, weights = 0;
};
WinogradBytes winograd_workspace(const GemmProduct& product);

/// Returns whether the product is a float convolution of 3 x 3 kernels with stride 1 that benefits from the transforms:
/// it has enough channels, and the tiles do not extend too far beyond the image.
bool has_winograd(const GemmProduct& product);

/// Returns the bytes of workspace after all products with transforms have been computed.
std::size_t winograd_bytes(std::span<const GemmProduct> products);

}  // namespace mylos
