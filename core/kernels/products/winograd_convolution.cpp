#include "core/kernels/products/winograd_convolution.hpp"

#include "core/kernels/products/winograd_sizes.hpp"
#include "core/kernels/team.hpp"
#include "core/work.hpp"

#include <algorithm>

namespace mylos {
namespace {

/// Channels transformed at a time.
constexpr std::size_t channel_chunk = 256;
/// A pixel outside an image.
alignas(64) constexpr float no_pixel[channel_chunk] = {};

/// Pointers to the pixels of a square with side `extent` and first pixel (row, column) in an image, at channel 0;
/// `outside` for pixels outside the image.
template <std::size_t extent, class Pixel>
struct Square {
  Pixel* at[extent * extent];

  Square(Pixel* images, std::size_t image, std::size_t height, std::size_t width, std::size_t channels,
         std::ptrdiff_t row, std::ptrdiff_t column, Pixel* outside) {
    for (std::size_t i = 0; i < extent; ++i) {
      for (std::size_t j = 0; j < extent; ++j) {
        // Negative positions become larger than any size.
        const std::size_t r = static_cast<std::size_t>(row) + i, c = static_cast<std::size_t>(column) + j;
        const bool is_inside = r < height && c < width;
        at[i * extent + j] = is_inside ? images + ((image * height + r) * width + c) * channels : outside;
      }
    }
    outside_ = outside;
  }
  /// Returns the pixel at channel `first`.
  Pixel* pixel(std::size_t position, std::size_t first) const {
    return at[position] == outside_ ? outside_ : at[position] + first;
  }

 private:
  Pixel* outside_;
};

/// Calls use(first, count) for chunks of the channels.
template <class Use>
void for_each_chunk(std::size_t channels, const Use& use) {
  for (std::size_t first = 0; first < channels; first += channel_chunk) {
    use(first, std::min(channel_chunk, channels - first));
  }
}

/// V (16, tiles, channels) = B^T d B of the 4 x 4 input pixels d of each output tile.
struct TransformImages {
  WinogradTiles grid;
  std::size_t height, width, channels;  ///< extents of the images
  std::ptrdiff_t offset;                ///< from a tile's position in the output to its first input row and column
  std::size_t first, count;             ///< tiles of this block
  const float* images;
  float* to;

  void operator()(const HostTeam& team, std::size_t row) const {
    const std::size_t tile = first + row, in_image = tile % grid.tiles();
    const Square<4, const float> square(images, tile / grid.tiles(), height, width, channels,
                                        static_cast<std::ptrdiff_t>(in_image / grid.columns() * 2) + offset,
                                        static_cast<std::ptrdiff_t>(in_image % grid.columns() * 2) + offset, no_pixel);
    for_each_chunk(channels, [&](std::size_t begin, std::size_t size) {
      const float* d[winograd_positions];
      for (std::size_t position = 0; position < winograd_positions; ++position)
        d[position] = square.pixel(position, begin);
      const std::size_t stride = count * channels;
      float* const v = to + row * channels + begin;
      team_for(team, size, [=](std::size_t c) {
        float t[4][4];
        for (std::size_t j = 0; j < 4; ++j) {
          const float d0 = d[j][c], d1 = d[4 + j][c], d2 = d[8 + j][c], d3 = d[12 + j][c];
          t[0][j] = d0 - d2;
          t[1][j] = d1 + d2;
          t[2][j] = d2 - d1;
          t[3][j] = d1 - d3;
        }
        for (std::size_t i = 0; i < 4; ++i) {
          v[(4 * i + 0) * stride + c] = t[i][0] - t[i][2];
          v[(4 * i + 1) * stride + c] = t[i][1] + t[i][2];
          v[(4 * i + 2) * stride + c] = t[i][2] - t[i][1];
          v[(4 * i + 3) * stride + c] = t[i][1] - t[i][3];
        }
      });
    });
  }
};

/// (16, tiles, channels) = A dy A^T of each tile of 2 x 2 pixels of dy.
struct TransformGradients {
  WinogradTiles grid;
  std::size_t channels;
  std::size_t first, count;
  const float* dy;
  float* to;

  void operator()(const HostTeam& team, std::size_t row) const {
    const std::size_t tile = first + row, in_image = tile % grid.tiles();
    const Square<2, const float> square(dy, tile / grid.tiles(), grid.height, grid.width, channels,
                                        static_cast<std::ptrdiff_t>(in_image / grid.columns() * 2),
                                        static_cast<std::ptrdiff_t>(in_image % grid.columns() * 2), no_pixel);
    for_each_chunk(channels, [&](std::size_t begin, std::size_t size) {
      const float *const y0 = square.pixel(0, begin), *const y1 = square.pixel(1, begin);
      const float *const y2 = square.pixel(2, begin), *const y3 = square.pixel(3, begin);
      const std::size_t stride = count * channels;
      float* const p = to + row * channels + begin;
      team_for(team, size, [=](std::size_t c) {
        const float left[4] = {y0[c], y0[c] + y2[c], y0[c] - y2[c], -y2[c]};
        const float right[4] = {y1[c], y1[c] + y3[c], y1[c] - y3[c], -y3[c]};
        for (std::size_t i = 0; i < 4; ++i) {
          p[(4 * i + 0) * stride + c] = left[i];
          p[(4 * i + 1) * stride + c] = left[i] + right[i];
          p[(4 * i + 2) * stride + c] = left[i] - right[i];
          p[(4 * i + 3) * stride + c] = -right[i];
        }
      });
    });
  }
};

/// The 2 x 2 pixels of each output tile = A^T m A of its sums m (16, tiles, channels).
struct TransformResults {
  WinogradTiles grid;
  std::size_t channels;
  std::size_t first, count;
  const float* from;
  float* results;

  void operator()(const HostTeam& team, std::size_t row) const {
    alignas(64) float dropped[channel_chunk];
    const std::size_t tile = first + row, in_image = tile % grid.tiles();
    const Square<2, float> square(results, tile / grid.tiles(), grid.height, grid.width, channels,
                                  static_cast<std::ptrdiff_t>(in_image / grid.columns() * 2),
                                  static_cast<std::ptrdiff_t>(in_image % grid.columns() * 2), dropped);
    for_each_chunk(channels, [&](std::size_t begin, std::size_t size) {
      float *const y0 = square.pixel(0, begin), *const y1 = square.pixel(1, begin);
      float *const y2 = square.pixel(2, begin), *const y3 = square.pixel(3, begin);
      const std::size_t stride = count * channels;
      const float* const m = from + row * channels + begin;
      team_for(team, size, [=](std::size_t c) {
        float top[4], bottom[4];
        for (std::size_t j = 0; j < 4; ++j) {
          const float m0 = m[j * stride + c], m1 = m[(4 + j) * stride + c], m2 = m[(8 + j) * stride + c],
                      m3 = m[(12 + j) * stride + c];
          top[j] = m0 + m1 + m2;
          bottom[j] = m1 - m2 - m3;
        }
        y3[c] = bottom[1] - bottom[2] - bottom[3];
        y2[c] = bottom[0] + bottom[1] + bottom[2];
        y1[c] = top[1] - top[2] - top[3];
        y0[c] = top[0] + top[1] + top[2];
      });
    });
  }
};

/// U (16, out, in) = G g G^T of the 3 x 3 weights g of each pair of channels; `flips` rotates each kernel by 180
/// degrees.
struct TransformWeights {
  std::size_t out, in;
  bool flips;
  const float* weight;
  float* to;

  void operator()(const HostTeam& team, std::size_t output) const {
    const float* const g = weight + output * 9 * in;
    // The rotation exchanges the first and last rows, and columns, of the transformed kernel.
    const std::size_t stride = out * in, first = flips ? 3 : 0, last = flips ? 0 : 3;
    const std::size_t lines[4] = {first, 1, 2, last};
    float* u[winograd_positions];
    for (std::size_t i = 0; i < 4; ++i) {
      for (std::size_t j = 0; j < 4; ++j) u[4 * i + j] = to + (4 * lines[i] + lines[j]) * stride + output * in;
    }
    const std::size_t inputs = in;
    team_for(team, in, [=](std::size_t c) {
      float t[4][3];
      for (std::size_t j = 0; j < 3; ++j) {
        const float g0 = g[j * inputs + c], g1 = g[(3 + j) * inputs + c], g2 = g[(6 + j) * inputs + c];
        t[0][j] = g0;
        t[1][j] = 0.5f * (g0 + g1 + g2);
        t[2][j] = 0.5f * (g0 - g1 + g2);
        t[3][j] = g2;
      }
      for (std::size_t i = 0; i < 4; ++i) {
        u[4 * i + 0][c] = t[i][0];
        u[4 * i + 1][c] = 0.5f * (t[i][0] + t[i][1] + t[i][2]);
        u[4 * i + 2][c] = 0.5f * (t[i][0] - t[i][1] + t[i][2]);
        u[4 * i + 3][c] = t[i][2];
      }
    });
  }
};

/// dweight (out, 9 in) = G^T q G of the sums q (16, out, in), + beta dweight.
struct TransformWeightGradients {
  std::size_t out, in;
  float beta;
  const float* from;
  float* dweight;

  void operator()(const HostTeam& team, std::size_t output) const {
    const std::size_t stride = out * in, inputs = in;
    const float* const q = from + output * in;
    float* const g = dweight + output * 9 * in;
    const bool adds = beta != 0.0f;
    team_for(team, in, [=](std::size_t c) {
      float t[3][4];
      for (std::size_t j = 0; j < 4; ++j) {
        const float q0 = q[j * stride + c], q1 = q[(4 + j) * stride + c], q2 = q[(8 + j) * stride + c],
                    q3 = q[(12 + j) * stride + c];
        t[0][j] = q0 + 0.5f * (q1 + q2);
        t[1][j] = 0.5f * (q1 - q2);
        t[2][j] = 0.5f * (q1 + q2) + q3;
      }
      for (std::size_t i = 0; i < 3; ++i) {
        const float sums[3] = {t[i][0] + 0.5f * (t[i][1] + t[i][2]), 0.5f * (t[i][1] - t[i][2]),
                               0.5f * (t[i][1] + t[i][2]) + t[i][3]};
        for (std::size_t j = 0; j < 3; ++j) {
          float* const to = g + (3 * i + j) * inputs + c;
          *to = sums[j] + (adds ? *to : 0.0f);
        }
      }
    });
  }
};

template <class Functor>
void transform(const ExecutionSpace& space, const char* label, std::size_t rows, std::size_t elements, double flops,
               double bytes, const Functor& functor) {
  const Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::size_t>> policy(space, 0, rows);
  Kokkos::parallel_for(with_work(label, work_of(elements, flops, bytes * sizeof(float))), policy,
                       HostRows<Functor>{functor});
}

}  // namespace

void WinogradConvolution::compute(const ExecutionSpace& space, const GemmCall& call, const Multiply& multiply) {
  if (call.convolution->pass == ConvolutionPass::weight_gradient) return weight_gradient(space, call, multiply);
  convolve(space, call, multiply);
}

void WinogradConvolution::convolve(const ExecutionSpace& space, const GemmCall& call, const Multiply& multiply) {
  const ConvolutionShape& shape = call.convolution->shape;
  const bool is_gradient = call.convolution->pass == ConvolutionPass::input_gradient;
  const GemmProduct product = product_of(call);
  const WinogradTiles grid = winograd_tiles(*call.convolution);
  const std::size_t tiles = batch_extent(product) * grid.tiles(), at_once = winograd_tiles_at_once(shape, tiles);
  const WinogradBytes bytes = winograd_workspace(product);
  auto* const v = static_cast<float*>(images_.get(bytes.images));
  auto* const m = static_cast<float*>(results_.get(bytes.results));
  auto* const u = static_cast<float*>(weights_.get(bytes.weights));
  const auto padding = static_cast<std::ptrdiff_t>(shape.padding);
  transform(space, "mylos::convolution::winograd_weights", shape.out, shape.out * shape.in, 35.0,
            9.0 + winograd_positions,
            TransformWeights{shape.out, shape.in, is_gradient, static_cast<const float*>(call.b), u});
  const std::size_t from = is_gradient ? shape.out : shape.in, to = is_gradient ? shape.in : shape.out;
  for (std::size_t first = 0; first < tiles; first += at_once) {
    const std::size_t count = std::min(at_once, tiles - first);
    transform(space, "mylos::convolution::winograd_images", count, count * from, 32.0, 4.0 + winograd_positions,
              TransformImages{grid, is_gradient ? shape.out_height() : shape.height,
                              is_gradient ? shape.out_width() : shape.width, from, is_gradient ? padding - 2 : -padding,
                              first, count, static_cast<const float*>(call.a), v});
    multiply({.count = winograd_positions,
              .transpose_b = is_gradient ? Transpose::no : Transpose::yes,
              .m = count,
              .n = to,
              .k = from,
              .a = v,
              .b = u,
              .c = m});
    transform(space, "mylos::convolution::winograd_results", count, count * to, 24.0, 4.0 + winograd_positions,
              TransformResults{grid, to, first, count, m, static_cast<float*>(call.c)});
  }
}

void WinogradConvolution::weight_gradient(const ExecutionSpace& space, const GemmCall& call, const Multiply& multiply) {
  const ConvolutionShape& shape = call.convolution->shape;
  const GemmProduct product = product_of(call);
  const WinogradTiles grid = winograd_tiles(*call.convolution);
  const std::size_t tiles = batch_extent(product) * grid.tiles(), at_once = winograd_tiles_at_once(shape, tiles);
  const WinogradBytes bytes = winograd_workspace(product);
  auto* const v = static_cast<float*>(images_.get(bytes.images));
  auto* const p = static_cast<float*>(results_.get(bytes.results));
  auto* const q = static_cast<float*>(weights_.get(bytes.weights));
  for (std::size_t first = 0; first < tiles; first += at_once) {
    const std::size_t count = std::min(at_once, tiles - first);
    transform(space, "mylos::convolution::winograd_images", count, count * shape.in, 32.0, 4.0 + winograd_positions,
              TransformImages{grid, shape.height, shape.width, shape.in, -static_cast<std::ptrdiff_t>(shape.padding),
                              first, count, static_cast<const float*>(call.b), v});
    transform(space, "mylos::convolution::winograd_gradients", count, count * shape.out, 12.0, 4.0 + winograd_positions,
              TransformGradients{grid, shape.out, first, count, static_cast<const float*>(call.a), p});
    multiply({.count = winograd_positions,
              .transpose_a = Transpose::yes,
              .m = shape.out,
              .n = shape.in,
              .k = count,
              .a = p,
              .b = v,
              .c = q,
              .beta = first == 0 ? 0.0f : 1.0f});
  }
  const double added = call.beta != 0.0f ? 9.0 : 0.0;
  transform(space, "mylos::convolution::winograd_weight_gradients", shape.out, shape.out * shape.in, 42.0 + added,
            9.0 + added + winograd_positions,
            TransformWeightGradients{shape.out, shape.in, call.beta, q, static_cast<float*>(call.c)});
}

}  // namespace mylos
