#include "core/kernels/products/gathered_convolution.hpp"

#include "core/kernels/activation.hpp"
#include "core/kernels/chunks.hpp"
#include "core/work.hpp"

#include <algorithm>

namespace mylos {
namespace {

/// Bytes of gathered rows per product: few enough to stay in a host's cache, and enough for products that occupy a
/// device.
constexpr std::size_t block_bytes(bool on_host) { return std::size_t{on_host ? 2u : 64u} << 20; }
/// The minimum number of rows per product. With fewer, packing the other operand anew for each product takes too long.
constexpr std::size_t least_block_rows = 256;

/// Rows (N grid_height grid_width, taps_height taps_width channels) of image patches: position (r, c) of the grid reads
/// pixels from (r step + first_row, c step + first_column) on; pixels outside the image are zeros. `padding` zeros
/// follow.
struct Patches {
  std::size_t height = 0, width = 0, channels = 0;  ///< extents of the images
  std::size_t grid_height = 0, grid_width = 0, step = 1;
  std::ptrdiff_t first_row = 0, first_column = 0;
  std::size_t taps_height = 0, taps_width = 0;
  std::size_t padding = 0;

  KOKKOS_INLINE_FUNCTION std::size_t grid() const { return grid_height * grid_width; }
  KOKKOS_INLINE_FUNCTION std::size_t columns() const { return taps_height * taps_width * channels + padding; }
};

/// to[i] = 0 for i in [0, count).
template <class Team, class T>
KOKKOS_FORCEINLINE_FUNCTION void fill(const Team& team, T* to, std::size_t count) {
  team_for(team, count, [=](std::size_t i) { to[i] = T(0.0f); });
}

/// to[i] = from[i] for i in [0, count).
template <class Team, class T>
KOKKOS_FORCEINLINE_FUNCTION void copy(const Team& team, const T* from, T* to, std::size_t count) {
  team_map(
      team, count, [](const T& value, T& copied) { copied = value; }, from, written(to));
}

template <class T>
struct GatherRow {
  Patches patches;
  std::size_t first;  ///< index of the block's first row
  const T* images;
  T* rows;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t row) const {
    const std::size_t position = first + row, image = position / patches.grid(), in_image = position % patches.grid();
    const auto height = static_cast<std::ptrdiff_t>(patches.height), width = static_cast<std::ptrdiff_t>(patches.width);
    const auto taps = static_cast<std::ptrdiff_t>(patches.taps_width);
    const std::ptrdiff_t top =
        static_cast<std::ptrdiff_t>(in_image / patches.grid_width * patches.step) + patches.first_row;
    const std::ptrdiff_t left =
        static_cast<std::ptrdiff_t>(in_image % patches.grid_width * patches.step) + patches.first_column;
    // The taps [begin, end) of each line lie inside the image.
    const std::ptrdiff_t end = left + taps <= width ? taps : (left < width ? width - left : 0);
    const std::ptrdiff_t begin = left >= 0 ? 0 : (-left < end ? -left : end);
    const auto before = static_cast<std::size_t>(begin) * patches.channels,
               inside = static_cast<std::size_t>(end - begin) * patches.channels,
               after = static_cast<std::size_t>(taps - end) * patches.channels;
    T* to = rows + row * patches.columns();
    for (std::size_t tap = 0; tap < patches.taps_height; ++tap, to += before + inside + after) {
      const std::ptrdiff_t line = top + static_cast<std::ptrdiff_t>(tap);
      if (line < 0 || line >= height || inside == 0) {
        fill(team, to, before + inside + after);
        continue;
      }
      const auto pixel =
          static_cast<std::size_t>((static_cast<std::ptrdiff_t>(image) * height + line) * width + left + begin);
      const T* const from = images + pixel * patches.channels;
      T* const out = to + before;
      fill(team, to, before);
      copy(team, from, out, inside);
      fill(team, out + inside, after);
    }
    fill(team, to, patches.padding);
  }
};

/// to (rows, columns) = from (rows, terms) with zeros in the further columns.
template <class T>
struct PadRow {
  std::size_t terms, columns;
  const T* from;
  T* to;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t row) const {
    const T* const in = from + row * terms;
    T* const out = to + row * columns;
    copy(team, in, out, terms);
    fill(team, out + terms, columns - terms);
  }
};

/// to (rows, terms) = from (rows, columns) without its last columns + beta to, where beta is 0 or 1.
struct UnpadRow {
  std::size_t terms, columns;
  const float* from;
  float* to;
  float beta;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t row) const {
    const float* const in = from + row * columns;
    float* const out = to + row * terms;
    const bool adds = beta != 0.0f;
    team_for(team, terms, [=](std::size_t i) { out[i] = adds ? out[i] + in[i] : in[i]; });
  }
};

/// Gathers rows [first, first + rows) of the patches.
void gather(const ExecutionSpace& space, Precision precision, const Patches& patches, const void* images,
            std::size_t first, std::size_t rows, void* to) {
  with_type(precision, [&]<class T>(T) {
    for_each_row(with_work("mylos::convolution::gather", work_of(rows * patches.columns(), 0.0, 2.0 * sizeof(T))),
                 space, rows, GatherRow<T>{patches, first, static_cast<const T*>(images), static_cast<T*>(to)},
                 team_of_row<T>(space, patches.columns()));
  });
}

/// Returns the patches of x for the forward pass and for weight gradients. On a device, rows are padded to a multiple
/// of 16 bytes, because products read other rows one element at a time: 147 terms of three channels become 152.
Patches patches_of_x(const ConvolutionShape& shape, Precision precision, bool on_host = runs_on_host) {
  const auto offset = -static_cast<std::ptrdiff_t>(shape.padding);
  const std::size_t width = kernels_in_teams || !on_host ? access_bytes / bytes_of(precision) : 1;
  return {shape.height,
          shape.width,
          shape.in,
          shape.out_height(),
          shape.out_width(),
          shape.stride,
          offset,
          offset,
          shape.kernel_height,
          shape.kernel_width,
          (width - shape.terms() % width) % width};
}

/// The kernel taps, along one axis, that contribute to the pixels first, first + stride ... of dx, and their positions
/// in dy: pixel first + stride r reads from r + offset on, starting with the last tap.
struct PhaseTaps {
  std::size_t first_tap = 0, count = 0;
  std::ptrdiff_t offset = 0;
};

PhaseTaps taps_of_phase(const ConvolutionShape& shape, std::size_t phase, std::size_t kernel) {
  const std::size_t first = (phase + shape.padding) % shape.stride;
  const std::size_t count = first < kernel ? (kernel - first - 1) / shape.stride + 1 : 0;
  return {first, count,
          static_cast<std::ptrdiff_t>((phase + shape.padding) / shape.stride) - static_cast<std::ptrdiff_t>(count) + 1};
}

/// The pixels of dx whose row and column have given remainders modulo the stride; the same taps contribute to all of
/// them.
struct Phase {
  std::size_t row = 0, column = 0;
  PhaseTaps rows, columns;
  Patches patches;  ///< patches of dy
};

std::size_t pixels_of_phase(std::size_t pixels, std::size_t phase, std::size_t stride) {
  return phase < pixels ? (pixels - phase - 1) / stride + 1 : 0;
}

Phase make_phase(const ConvolutionShape& shape, std::size_t row, std::size_t column) {
  Phase phase{row,
              column,
              taps_of_phase(shape, row, shape.kernel_height),
              taps_of_phase(shape, column, shape.kernel_width),
              {}};
  phase.patches = {shape.out_height(),
                   shape.out_width(),
                   shape.out,
                   pixels_of_phase(shape.height, row, shape.stride),
                   pixels_of_phase(shape.width, column, shape.stride),
                   1,
                   phase.rows.offset,
                   phase.columns.offset,
                   phase.rows.count,
                   phase.columns.count,
                   0};
  return phase;
}

template <class Use>
void for_each_phase(const ConvolutionShape& shape, const Use& use) {
  for (std::size_t row = 0; row < std::min(shape.stride, shape.height); ++row) {
    for (std::size_t column = 0; column < std::min(shape.stride, shape.width); ++column) {
      use(make_phase(shape, row, column));
    }
  }
}

/// to (taps out, in) = the taps of a phase of a weight (out, kernel_height, kernel_width, in), in reverse order.
template <class T>
struct WeightsOfPhase {
  ConvolutionShape shape;
  PhaseTaps rows, columns;
  const T* weight;
  T* to;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t row) const {
    const std::size_t tap = row / shape.out, output = row % shape.out;
    const std::size_t i = rows.first_tap + shape.stride * (rows.count - 1 - tap / columns.count);
    const std::size_t j = columns.first_tap + shape.stride * (columns.count - 1 - tap % columns.count);
    const T* const from = weight + ((output * shape.kernel_height + i) * shape.kernel_width + j) * shape.in;
    T* const out = to + row * shape.in;
    copy(team, from, out, shape.in);
  }
};

/// Writes the rows of a phase to their pixels of dx; zeros if there are no rows.
template <class T>
struct SpreadRow {
  Phase phase;
  std::size_t height, width, channels, stride;  ///< extents of dx, and the convolution's stride
  std::size_t first;                            ///< index of the block's first row
  const T* rows;
  T* dx;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t row) const {
    const std::size_t grid = phase.patches.grid(), position = first + row;
    const std::size_t image = position / grid, in_image = position % grid;
    const std::size_t r = phase.row + stride * (in_image / phase.patches.grid_width);
    const std::size_t c = phase.column + stride * (in_image % phase.patches.grid_width);
    T* const to = dx + ((image * height + r) * width + c) * channels;
    if (rows == nullptr) return fill(team, to, channels);
    const T* const from = rows + row * channels;
    copy(team, from, to, channels);
  }
};

void spread(const ExecutionSpace& space, Precision precision, const ConvolutionShape& shape, const Phase& phase,
            std::size_t first, std::size_t rows, const void* from, void* dx) {
  with_type(precision, [&]<class T>(T) {
    const double copies = from == nullptr ? 1.0 : 2.0;
    for_each_row(with_work("mylos::convolution::spread", work_of(rows * shape.in, 0.0, copies * sizeof(T))), space,
                 rows,
                 SpreadRow<T>{phase, shape.height, shape.width, shape.in, shape.stride, first,
                              static_cast<const T*>(from), static_cast<T*>(dx)},
                 team_of_row<T>(space, shape.in));
  });
}

/// The partition of patch rows into blocks: several images, or some grid lines of one image. Only the last block
/// depends on the number of images, and only if blocks hold several images.
struct Blocks {
  std::size_t images = 1;  ///< images per block
  std::size_t lines = 0;   ///< grid lines per block of one image
};

Blocks blocks_of(const Patches& patches, Precision precision, bool on_host = runs_on_host) {
  const std::size_t row_bytes = patches.columns() * bytes_of(precision);
  const std::size_t rows = std::max(block_bytes(on_host) / row_bytes, least_block_rows), grid = patches.grid();
  if (rows >= grid) return {rows / grid, patches.grid_height};
  const std::size_t pieces = std::min((grid + rows - 1) / rows, patches.grid_height);
  return {1, (patches.grid_height + pieces - 1) / pieces};
}

/// Calls use(first row, rows) for each block of the patches of `images` images.
template <class Use>
void for_each_block(const Patches& patches, Precision precision, std::size_t images, const Use& use) {
  const Blocks blocks = blocks_of(patches, precision);
  for (std::size_t image = 0; image < images; image += blocks.images) {
    const std::size_t together = std::min(blocks.images, images - image), first = image * patches.grid();
    if (blocks.lines == patches.grid_height) {
      use(first, together * patches.grid());
      continue;
    }
    for (std::size_t line = 0; line < patches.grid_height; line += blocks.lines) {
      use(first + line * patches.grid_width, std::min(blocks.lines, patches.grid_height - line) * patches.grid_width);
    }
  }
}

std::size_t gathered_rows(const Patches& patches, Precision precision, std::size_t images,
                          bool on_host = runs_on_host) {
  const Blocks blocks = blocks_of(patches, precision, on_host);
  return std::min(images, blocks.images) * blocks.lines * patches.grid_width;
}

/// Returns a plain product in `call`'s precisions.
GemmCall plain(const GemmCall& call, std::size_t m, std::size_t n, std::size_t k) {
  GemmCall product = call;
  product.convolution = std::nullopt;
  product.m = m;
  product.n = n;
  product.k = k;
  return product;
}

/// Returns whether there is a single phase with all pixels of dx, so that products can write to dx directly.
bool writes_whole_rows(const ConvolutionShape& shape) { return shape.stride == 1; }

}  // namespace

void GatheredConvolution::compute(const ExecutionSpace& space, const GemmCall& call, const Multiply& multiply) {
  if (call.convolution->shape.is_pointwise()) return multiply(plain(call, call.m, call.n, call.k));
  switch (call.convolution->pass) {
    case ConvolutionPass::forward:
      return forward(space, call, multiply);
    case ConvolutionPass::input_gradient:
      return input_gradient(space, call, multiply);
    case ConvolutionPass::weight_gradient:
      return weight_gradient(space, call, multiply);
  }
}

void GatheredConvolution::forward(const ExecutionSpace& space, const GemmCall& call, const Multiply& multiply) {
  const ConvolutionShape& shape = call.convolution->shape;
  const Patches patches = patches_of_x(shape, call.input);
  const std::size_t images = call.m / patches.grid(), columns = patches.columns();
  void* const rows = gathered_.get(gathered_rows(patches, call.input, images) * columns * bytes_of(call.input));
  const void* weight = call.b;
  if (patches.padding > 0) {
    void* const padded = weights_.get(shape.out * columns * bytes_of(call.input));
    with_type(call.input, [&]<class T>(T) {
      for_each_row(with_work("mylos::convolution::weights", work_of(shape.out * columns, 0.0, 2.0 * sizeof(T))), space,
                   shape.out, PadRow<T>{shape.terms(), columns, static_cast<const T*>(call.b), static_cast<T*>(padded)},
                   team_of_row<T>(space, columns));
    });
    weight = padded;
  }
  for_each_block(patches, call.input, images, [&](std::size_t first, std::size_t count) {
    gather(space, call.input, patches, call.a, first, count, rows);
    GemmCall product = plain(call, count, call.n, columns);
    product.a = rows;
    product.b = weight;
    product.c = element_of(call.c, first * call.n, call.output);
    multiply(product);
  });
}

void GatheredConvolution::weight_gradient(const ExecutionSpace& space, const GemmCall& call, const Multiply& multiply) {
  const ConvolutionShape& shape = call.convolution->shape;
  const Patches patches = patches_of_x(shape, call.input);
  const std::size_t images = call.k / patches.grid(), columns = patches.columns();
  void* const rows = gathered_.get(gathered_rows(patches, call.input, images) * columns * bytes_of(call.input));
  void* const padded = patches.padding > 0 ? results_.get(call.m * columns * sizeof(float)) : nullptr;
  for_each_block(patches, call.input, images, [&](std::size_t first, std::size_t count) {
    gather(space, call.input, patches, call.b, first, count, rows);
    GemmCall product = plain(call, call.m, columns, count);
    product.a = element_of(call.a, first * call.m, call.input);
    product.b = rows;
    if (padded != nullptr) product.c = padded;
    product.beta = first > 0 ? 1.0f : (padded == nullptr ? call.beta : 0.0f);
    multiply(product);
  });
  if (padded == nullptr) return;
  for_each_row(with_work("mylos::convolution::unpad", work_of(call.m * call.n, 1.0, 2.0 * sizeof(float))), space,
               call.m,
               UnpadRow{call.n, columns, static_cast<const float*>(padded), static_cast<float*>(call.c), call.beta},
               team_of_row<float>(space, call.n));
}

void GatheredConvolution::input_gradient(const ExecutionSpace& space, const GemmCall& call, const Multiply& multiply) {
  const ConvolutionShape& shape = call.convolution->shape;
  const std::size_t images = call.m / shape.out_pixels();
  void* const weights = weights_.get(shape.out * shape.terms() * bytes_of(call.input));
  for_each_phase(shape, [&](const Phase& phase) {
    const Patches& patches = phase.patches;
    const std::size_t terms = patches.columns();
    if (terms == 0) {
      return spread(space, call.output, shape, phase, 0, images * patches.grid(), nullptr, call.c);
    }
    with_type(call.input, [&]<class T>(T) {
      const Work work = work_of(terms * shape.in, 0.0, 2.0 * sizeof(T));
      for_each_row(
          with_work("mylos::convolution::weights", work), space, terms,
          WeightsOfPhase<T>{shape, phase.rows, phase.columns, static_cast<const T*>(call.b), static_cast<T*>(weights)},
          team_of_row<T>(space, shape.in));
    });
    const std::size_t most = gathered_rows(patches, call.input, images);
    void* const rows = gathered_.get(most * terms * bytes_of(call.input));
    void* const results = writes_whole_rows(shape) ? nullptr : results_.get(most * shape.in * bytes_of(call.output));
    for_each_block(patches, call.input, images, [&](std::size_t first, std::size_t count) {
      gather(space, call.input, patches, call.a, first, count, rows);
      GemmCall product = plain(call, count, shape.in, terms);
      product.a = rows;
      product.b = weights;
      product.c = results == nullptr ? element_of(call.c, first * shape.in, call.output) : results;
      multiply(product);
      if (results != nullptr) spread(space, call.output, shape, phase, first, count, results, call.c);
    });
  });
}

std::size_t GatheredConvolution::bytes(std::span<const GemmProduct> products, bool on_host) {
  std::size_t gathered = 0, weights = 0, results = 0;
  for (const GemmProduct& product : products) {
    if (!product.convolution || product.convolution->shape.is_pointwise()) continue;
    const ConvolutionShape& shape = product.convolution->shape;
    const std::size_t images = batch_extent(product), element = bytes_of(product.input);
    if (product.convolution->pass != ConvolutionPass::input_gradient) {
      const Patches patches = patches_of_x(shape, product.input, on_host);
      gathered =
          std::max(gathered, gathered_rows(patches, product.input, images, on_host) * patches.columns() * element);
      if (patches.padding == 0) continue;
      const bool is_forward = product.convolution->pass == ConvolutionPass::forward;
      std::size_t& copy = is_forward ? weights : results;
      copy = std::max(copy, shape.out * patches.columns() * (is_forward ? element : sizeof(float)));
      continue;
    }
    weights = std::max(weights, shape.out * shape.terms() * element);
    for_each_phase(shape, [&](const Phase& phase) {
      if (phase.patches.columns() == 0) return;
      const std::size_t rows = gathered_rows(phase.patches, product.input, images, on_host);
      gathered = std::max(gathered, rows * phase.patches.columns() * element);
      if (!writes_whole_rows(shape)) results = std::max(results, rows * shape.in * element);
    });
  }
  return gathered + weights + results;
}

}  // namespace mylos
