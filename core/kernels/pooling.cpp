#include "core/kernels/pooling.hpp"

#include "core/base/error.hpp"
#include "core/kernels/team.hpp"
#include "core/work.hpp"

#include <fmt/format.h>

namespace mylos {
namespace {

/// Indices [begin, end).
struct PoolingInterval {
  std::size_t begin, end;
};

/// The sizes of an image and of its pooled result.
struct PoolingWindows {
  PoolingShape shape;
  std::size_t out_height, out_width;

  explicit PoolingWindows(const PoolingShape& of) : shape(of), out_height(of.out_height()), out_width(of.out_width()) {}

  /// Returns the positions in a window that lie inside the image, along an axis of `size`.
  KOKKOS_FORCEINLINE_FUNCTION PoolingInterval inside(std::size_t window, std::size_t size) const {
    const std::size_t first = window * shape.stride;
    const std::size_t end = size + shape.padding - first;
    return {first < shape.padding ? shape.padding - first : 0, end < shape.kernel ? end : shape.kernel};
  }
  /// Returns the windows that contain `at`, out of `count` windows along its axis.
  KOKKOS_FORCEINLINE_FUNCTION PoolingInterval containing(std::size_t at, std::size_t count) const {
    const std::size_t padded = at + shape.padding, last = padded / shape.stride + 1;
    const std::size_t first = padded < shape.kernel ? 0 : (padded - shape.kernel) / shape.stride + 1;
    return {first, last < count ? last : count};
  }
};

/// Pools one line of output pixels.
template <class T>
struct MaxPoolLine {
  PoolingWindows windows;
  ConstMatrix<T> x;
  Matrix<T> y;
  Matrix<std::uint8_t> taken;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t line) const {
    for (std::size_t column = 0; column < windows.out_width; ++column) pool(team, line, column);
  }

  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION void pool(const Team& team, std::size_t line, std::size_t column) const {
    const PoolingShape& shape = windows.shape;
    const std::size_t channels = y.extent(1), image = line / windows.out_height, row = line % windows.out_height;
    const PoolingInterval rows = windows.inside(row, shape.height), columns = windows.inside(column, shape.width);
    const std::size_t at = (line * windows.out_width + column) * channels;
    T* const out = y.data() + at;
    std::uint8_t* const position = taken.extent(0) > 0 ? taken.data() + at : nullptr;
    bool first = true;
    for (std::size_t i = rows.begin; i < rows.end; ++i) {
      for (std::size_t j = columns.begin; j < columns.end; ++j) {
        const std::size_t pixel = (image * shape.height + row * shape.stride + i - shape.padding) * shape.width +
                                  column * shape.stride + j - shape.padding;
        take(team, channels, x.data() + pixel * channels, static_cast<std::uint8_t>(i * shape.kernel + j), first, out,
             position);
        first = false;
      }
    }
  }

  /// Each channel is always processed by the same thread, so no barrier is needed.
  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION void take(const Team& team, std::size_t channels, const T* in, std::uint8_t index,
                                        bool first, T* out, std::uint8_t* position) const {
    if (first) {
      team_for(team, channels, [=](std::size_t c) { out[c] = in[c]; });
      if (position != nullptr) team_for(team, channels, [=](std::size_t c) { position[c] = index; });
      return;
    }
    if (position != nullptr) {
      team_for(team, channels, [=](std::size_t c) { position[c] = is_larger(in[c], out[c]) ? index : position[c]; });
    }
    team_for(team, channels, [=](std::size_t c) { out[c] = is_larger(in[c], out[c]) ? in[c] : out[c]; });
  }
  KOKKOS_FORCEINLINE_FUNCTION static bool is_larger(const T& value, const T& largest) {
    return float(value) > float(largest) || (float(value) != float(value) && float(largest) == float(largest));
  }
};

/// Computes one line of an image's gradient.
template <class T>
struct MaxPoolLineBackward {
  static constexpr int most = 4;  ///< maximum number of windows that contain a pixel

  PoolingWindows windows;
  Matrix<const std::uint8_t> taken;
  ConstMatrix<T> dy, also;
  Matrix<T> dx;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t line) const {
    for (std::size_t column = 0; column < windows.shape.width; ++column) gather(team, line, column);
  }

  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION void gather(const Team& team, std::size_t line, std::size_t column) const {
    const PoolingShape& shape = windows.shape;
    const std::size_t channels = dx.extent(1), image = line / shape.height, row = line % shape.height;
    const PoolingInterval rows = windows.containing(row, windows.out_height);
    const PoolingInterval columns = windows.containing(column, windows.out_width);
    // Unused entries refer to the first pooled pixel, with a position that occurs in no window.
    std::size_t at[most] = {0, 0, 0, 0};
    std::uint32_t position[most] = {256, 256, 256, 256};
    int count = 0;
    for (std::size_t i = rows.begin; i < rows.end; ++i) {
      for (std::size_t j = columns.begin; j < columns.end; ++j) {
        at[count] = ((image * windows.out_height + i) * windows.out_width + j) * channels;
        position[count++] = static_cast<std::uint32_t>((row + shape.padding - i * shape.stride) * shape.kernel +
                                                       column + shape.padding - j * shape.stride);
      }
    }
    add(team, at, position, dx.data() + (line * shape.width + column) * channels);
  }

  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION void add(const Team& team, const std::size_t (&at)[most],
                                       const std::uint32_t (&position)[most], T* out) const {
    const std::uint8_t *const t0 = taken.data() + at[0], *const t1 = taken.data() + at[1];
    const std::uint8_t *const t2 = taken.data() + at[2], *const t3 = taken.data() + at[3];
    const std::uint32_t p0 = position[0], p1 = position[1], p2 = position[2], p3 = position[3];
    const auto sum = [=](std::size_t c, float d0, float d1, float d2, float d3) {
      return ((t0[c] == p0 ? d0 : 0.0f) + (t1[c] == p1 ? d1 : 0.0f)) +
             ((t2[c] == p2 ? d2 : 0.0f) + (t3[c] == p3 ? d3 : 0.0f));
    };
    const T *const d0 = dy.data() + at[0], *const d1 = dy.data() + at[1];
    const T *const d2 = dy.data() + at[2], *const d3 = dy.data() + at[3];
    if (also.size() == 0) {
      return team_for(team, dx.extent(1), [=](std::size_t c) {
        out[c] = T(sum(c, float(d0[c]), float(d1[c]), float(d2[c]), float(d3[c])));
      });
    }
    const T *const a0 = also.data() + at[0], *const a1 = also.data() + at[1];
    const T *const a2 = also.data() + at[2], *const a3 = also.data() + at[3];
    team_for(team, dx.extent(1), [=](std::size_t c) {
      out[c] = T(sum(c, float(d0[c]) + float(a0[c]), float(d1[c]) + float(a1[c]), float(d2[c]) + float(a2[c]),
                     float(d3[c]) + float(a3[c])));
    });
  }
};

template <class T>
struct AveragePoolImage {
  ConstMatrix<T> x;
  Matrix<T> y;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t image) const {
    const std::size_t channels = y.extent(1), pixels = x.extent(0) / y.extent(0);
    const T* const in = x.data() + image * pixels * channels;
    T* const out = y.data() + image * channels;
    team_for(team, channels, [=](std::size_t c) {
      float sum = 0.0f;
      for (std::size_t pixel = 0; pixel < pixels; ++pixel) sum += float(in[pixel * channels + c]);
      out[c] = T(sum / static_cast<float>(pixels));
    });
  }
};

template <class T>
struct AveragePoolRowBackward {
  ConstMatrix<T> dy;
  Matrix<T> dx;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t row) const {
    const std::size_t channels = dy.extent(1), pixels = dx.extent(0) / dy.extent(0);
    const T* const in = dy.data() + row / pixels * channels;
    T* const out = dx.data() + row * channels;
    const float share = 1.0f / static_cast<float>(pixels);
    team_for(team, channels, [=](std::size_t c) { out[c] = T(float(in[c]) * share); });
  }
};

void check_pooling(const PoolingShape& shape) {
  require(shape.kernel > shape.padding && shape.stride > 0 && shape.kernel <= shape.height + 2 * shape.padding &&
              shape.kernel <= shape.width + 2 * shape.padding && shape.kernel <= 15,
          fmt::format("pooling: windows of {} x {} with stride {} and padding {} over images of {} x {}", shape.kernel,
                      shape.kernel, shape.stride, shape.padding, shape.height, shape.width));
}

/// Checks the extents of x and y, and returns the number of images.
template <class X, class Y>
std::size_t check_pooled(const PoolingShape& shape, const X& x, const Y& y) {
  const std::size_t pixels = shape.height * shape.width, pooled = shape.out_height() * shape.out_width();
  const std::size_t images = x.extent(0) / pixels;
  require(x.extent(0) == images * pixels && y.extent(0) == images * pooled && x.extent(1) == y.extent(1),
          fmt::format("pooling: {} x {} becomes {} x {}, not {} pixels an image {}", x.extent(0), x.extent(1),
                      y.extent(0), y.extent(1), pixels, pooled));
  return images;
}

template <class X, class Y>
void check_average(const X& x, const Y& y) {
  require(y.extent(0) > 0 && x.extent(0) % y.extent(0) == 0 && x.extent(1) == y.extent(1),
          fmt::format("average pooling: {} x {} and {} x {}", x.extent(0), x.extent(1), y.extent(0), y.extent(1)));
}

}  // namespace

template <class T>
void max_pool(const ExecutionSpace& space, const PoolingShape& shape, const ConstMatrix<T>& x, const Matrix<T>& y,
              const Matrix<std::uint8_t>& taken) {
  check_pooling(shape);
  const std::size_t images = check_pooled(shape, x, y);
  if (taken.extent(0) > 0) check_pooled(shape, x, taken);
  const Work work = work_of(y.size(), static_cast<double>(shape.kernel * shape.kernel), sizeof(T)) +
                    work_of(x.size(), 0.0, sizeof(T)) + work_of(taken.size(), 0.0, 1.0);
  for_each_row(with_work("mylos::pooling::max", work), space, images * shape.out_height(),
               MaxPoolLine<T>{PoolingWindows(shape), x, y, taken});
}

template <class T>
void max_pool_backward(const ExecutionSpace& space, const PoolingShape& shape, const Matrix<const std::uint8_t>& taken,
                       const ConstMatrix<T>& dy, const ConstMatrix<T>& also, const Matrix<T>& dx) {
  check_pooling(shape);
  require(shape.kernel <= 2 * shape.stride,
          fmt::format("pooling: windows of {} with stride {} overlap further than their neighbours", shape.kernel,
                      shape.stride));
  const std::size_t images = check_pooled(shape, dx, dy);
  check_pooled(shape, dx, taken);
  if (also.size() > 0) check_pooled(shape, dx, also);
  const Work work = work_of(dx.size(), 3.0, sizeof(T)) + work_of(dy.size() + also.size(), 0.0, sizeof(T)) +
                    work_of(taken.size(), 0.0, 1.0);
  for_each_row(with_work("mylos::pooling::max_backward", work), space, images * shape.height,
               MaxPoolLineBackward<T>{PoolingWindows(shape), taken, dy, also, dx});
}

template <class T>
void average_pool(const ExecutionSpace& space, const ConstMatrix<T>& x, const Matrix<T>& y) {
  check_average(x, y);
  for_each_row(
      with_work("mylos::pooling::average", work_of(x.size(), 1.0, sizeof(T)) + work_of(y.size(), 1.0, sizeof(T))),
      space, y.extent(0), AveragePoolImage<T>{x, y});
}

template <class T>
void average_pool_backward(const ExecutionSpace& space, const ConstMatrix<T>& dy, const Matrix<T>& dx) {
  check_average(dx, dy);
  for_each_row(with_work("mylos::pooling::average_backward",
                         work_of(dx.size(), 1.0, sizeof(T)) + work_of(dy.size(), 0.0, sizeof(T))),
               space, dx.extent(0), AveragePoolRowBackward<T>{dy, dx});
}

#define MYLOS_INSTANTIATE(T)                                                                                        \
  template void max_pool<T>(const ExecutionSpace&, const PoolingShape&, const ConstMatrix<T>&, const Matrix<T>&,    \
                            const Matrix<std::uint8_t>&);                                                           \
  template void max_pool_backward<T>(const ExecutionSpace&, const PoolingShape&, const Matrix<const std::uint8_t>&, \
                                     const ConstMatrix<T>&, const ConstMatrix<T>&, const Matrix<T>&);               \
  template void average_pool<T>(const ExecutionSpace&, const ConstMatrix<T>&, const Matrix<T>&);                    \
  template void average_pool_backward<T>(const ExecutionSpace&, const ConstMatrix<T>&, const Matrix<T>&);
MYLOS_INSTANTIATE(float)
MYLOS_INSTANTIATE(bfloat16)
MYLOS_INSTANTIATE(half)
#undef MYLOS_INSTANTIATE

}  // namespace mylos
