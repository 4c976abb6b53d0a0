#include "tests/small_models/image_kernels.hpp"

#include "core/kernels/team.hpp"

namespace mylos::small_models {
namespace {

/// The location of a pixel in the batch: its image, and the position in the image.
struct Pixel {
  std::size_t image, y, x;
};

KOKKOS_INLINE_FUNCTION Pixel pixel_of(const ImageSize& size, std::size_t row) {
  const std::size_t pixels = size.height * size.width, rest = row % pixels;
  return {row / pixels, rest / size.width, rest % size.width};
}

/// Returns the row of the neighbour at offset (dy - 1, dx - 1), or `outside`.
inline constexpr std::size_t outside = ~std::size_t{0};
KOKKOS_INLINE_FUNCTION std::size_t neighbour(const ImageSize& size, const Pixel& pixel, std::size_t dy,
                                             std::size_t dx) {
  const std::size_t y = pixel.y + dy, x = pixel.x + dx;  // one too large, to stay unsigned
  if (y == 0 || x == 0 || y > size.height || x > size.width) return outside;
  return (pixel.image * size.height + y - 1) * size.width + x - 1;
}

struct Gather {
  ImageSize size;
  ConstMatrix<float> x;
  Matrix<float> columns;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t row) const {
    const Pixel pixel = pixel_of(size, row);
    const std::size_t channels = x.extent(1);
    for (std::size_t tap = 0; tap < neighbours; ++tap) {
      const std::size_t from = neighbour(size, pixel, tap / 3, tap % 3);
      const float* const in = x.data() + (from == outside ? 0 : from) * channels;
      float* const out = columns.data() + row * columns.extent(1) + tap * channels;
      team_for(team, channels, [=](std::size_t c) { out[c] = from == outside ? 0.0f : in[c]; });
    }
  }
};

/// A pixel is tap t of the neighbour at the position opposite to t.
struct GatherBackward {
  ImageSize size;
  ConstMatrix<float> dcolumns;
  Matrix<float> dx;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t row) const {
    const Pixel pixel = pixel_of(size, row);
    const std::size_t channels = dx.extent(1);
    float* const out = dx.data() + row * channels;
    team_for(team, channels, [=](std::size_t c) { out[c] = 0.0f; });
    for (std::size_t tap = 0; tap < neighbours; ++tap) {
      const std::size_t from = neighbour(size, pixel, 2 - tap / 3, 2 - tap % 3);
      if (from == outside) continue;
      const float* const in = dcolumns.data() + from * dcolumns.extent(1) + tap * channels;
      team_for(team, channels, [=](std::size_t c) { out[c] += in[c]; });
    }
  }
};

/// Returns the row of pixel (y, x) in the window of pooled pixel `row`.
KOKKOS_INLINE_FUNCTION std::size_t row_in_window(const ImageSize& size, const ImageSize& window, std::size_t row,
                                                 std::size_t y, std::size_t x) {
  const Pixel pooled = pixel_of({size.height / window.height, size.width / window.width}, row);
  return (pooled.image * size.height + pooled.y * window.height + y) * size.width + pooled.x * window.width + x;
}

struct Pool {
  ImageSize size, window;
  ConstMatrix<float> x;
  Matrix<float> y;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t row) const {
    const std::size_t channels = y.extent(1), pixels = window.height * window.width;
    const float *const in = x.data(), share = 1.0f / static_cast<float>(pixels);
    float* const out = y.data() + row * channels;
    const ImageSize image = size, part = window;
    team_for(team, channels, [=](std::size_t c) {
      float sum = 0.0f;
      for (std::size_t i = 0; i < pixels; ++i) {
        sum += in[row_in_window(image, part, row, i / part.width, i % part.width) * channels + c];
      }
      out[c] = sum * share;
    });
  }
};

struct PoolBackward {
  ImageSize size, window;
  ConstMatrix<float> dy;
  Matrix<float> dx;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t row) const {
    const std::size_t channels = dy.extent(1), pixels = window.height * window.width;
    const float *const in = dy.data() + row * channels, share = 1.0f / static_cast<float>(pixels);
    for (std::size_t i = 0; i < pixels; ++i) {
      float* const out = dx.data() + row_in_window(size, window, row, i / window.width, i % window.width) * channels;
      team_for(team, channels, [=](std::size_t c) { out[c] = in[c] * share; });
    }
  }
};

}  // namespace

void gather_neighbours(const ExecutionSpace& space, const ImageSize& size, const ConstMatrix<float>& x,
                       const Matrix<float>& columns) {
  for_each_row("mylos::small_models::gather_neighbours", space, x.extent(0), Gather{size, x, columns});
}

void gather_neighbours_backward(const ExecutionSpace& space, const ImageSize& size, const ConstMatrix<float>& dcolumns,
                                const Matrix<float>& dx) {
  for_each_row("mylos::small_models::gather_neighbours_backward", space, dx.extent(0),
               GatherBackward{size, dcolumns, dx});
}

void average_pool(const ExecutionSpace& space, const ImageSize& size, const ImageSize& window,
                  const ConstMatrix<float>& x, const Matrix<float>& y) {
  for_each_row("mylos::small_models::average_pool", space, y.extent(0), Pool{size, window, x, y});
}

void average_pool_backward(const ExecutionSpace& space, const ImageSize& size, const ImageSize& window,
                           const ConstMatrix<float>& dy, const Matrix<float>& dx) {
  for_each_row("mylos::small_models::average_pool_backward", space, dy.extent(0), PoolBackward{size, window, dy, dx});
}

}  // namespace mylos::small_models
