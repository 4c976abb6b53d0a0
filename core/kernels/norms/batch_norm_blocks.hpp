#pragma once

#include "core/base/error.hpp"
#include "core/kernels/chunks.hpp"
#include "core/kernels/norms/batch_norm.hpp"
#include "core/kernels/team.hpp"

#include <fmt/format.h>

#include <algorithm>

/// Partition of arrays in BatchNorm's kernels: each image is cut into blocks of rows, independently of the number of
/// images, groups and threads. On hosts, a block stays in cache between two passes over it.
namespace mylos::batch_norm {

/// Approximate number of elements per block.
inline constexpr std::size_t block_elements = kernels_in_teams ? 65536 : 16384;
/// Bounds for the rows per block: many rows keep the partial sums small compared with the data, few rows keep the float
/// sums short.
inline constexpr std::size_t least_rows = 16, most_rows = 256;
/// Channels per task when partial sums are added up.
inline constexpr std::size_t channel_group = kernels_in_teams ? 32 : 16;

/// The rows of a block.
struct BlockRows {
  std::size_t begin, count;
};

struct StagingBlocks {
  std::size_t pixels, rows, of_image;

  StagingBlocks(std::size_t image_pixels, std::size_t channels)
      : pixels(image_pixels),
        rows(std::min(image_pixels, std::clamp(block_elements / channels, least_rows, most_rows))),
        of_image((image_pixels + rows - 1) / rows) {}

  KOKKOS_FORCEINLINE_FUNCTION std::size_t image(std::size_t block) const { return block / of_image; }
  KOKKOS_FORCEINLINE_FUNCTION BlockRows range(std::size_t block) const {
    const std::size_t first = block % of_image * rows;
    return {image(block) * pixels + first, pixels - first < rows ? pixels - first : rows};
  }
};

KOKKOS_FORCEINLINE_FUNCTION std::size_t channel_groups(std::size_t channels) {
  return (channels + channel_group - 1) / channel_group;
}

/// The contributions of one element to several sums over rows.
template <std::size_t count>
struct SumTerms {
  float value[count];

  KOKKOS_FORCEINLINE_FUNCTION void operator+=(const SumTerms& other) {
    MYLOS_UNROLLED
    for (std::size_t k = 0; k < count; ++k) value[k] += other.value[k];
  }
};

template <std::size_t count>
struct BlockTerms {
  double value[count];
};

/// Destinations of `count` sums per column.
template <std::size_t count>
struct ColumnSums {
  float* sums[count];

  KOKKOS_FORCEINLINE_FUNCTION void add(std::size_t c, const SumTerms<count>& terms) const {
    for (std::size_t k = 0; k < count; ++k) sums[k][c] += terms.value[k];
  }
};

/// Returns the number of threads of a device's team that share the rows of a chunk, which is `width` adjacent channels:
/// thread s has the rows s, s + slices ... It depends on sizes only, so sums over rows have the same bits on every
/// launch, whether or not arrays are aligned.
KOKKOS_FORCEINLINE_FUNCTION std::size_t row_slices(std::size_t columns, std::size_t width) {
  const std::size_t chunks = columns % width == 0 ? columns / width : columns;
  return chunks < device_team_size ? device_team_size / chunks : 1;
}

/// Calls then(slice, first channel, what of(channel) returns for each of `width` channels) for each chunk and slice of
/// a thread, which loads what belongs to the channels once for all its rows.
template <std::size_t width, class Team, class Of, class Then>
KOKKOS_FORCEINLINE_FUNCTION void for_chunks_of_thread(const Team& team, std::size_t slices, std::size_t chunks,
                                                      const Of& of, const Then& then) {
  for_items_of_thread(team, slices * chunks, [=](std::size_t item) {
    const std::size_t column = item % chunks * width;
    decltype(of(column)) held[width];
    MYLOS_UNROLLED
    for (unsigned j = 0; j < width; ++j) held[j] = of(column + j);
    then(item / chunks, column, held);
  });
}

/// Calls body(of(column), element of each array ...) for all elements of a block of rows, in any order. `of` returns
/// what belongs to a channel.
template <class Of, class Body, class... Arrays>
KOKKOS_FORCEINLINE_FUNCTION void for_elements(const HostTeam& team, std::size_t rows, std::size_t columns, const Of& of,
                                              const Body& body, const Arrays&... arrays) {
  for (std::size_t row = 0; row < rows; ++row) {
    team_for(team, columns, [=](std::size_t c) { body(of(c), element_of(arrays, row * columns + c)...); });
  }
}

template <std::size_t width, class Team, class Of, class Body, class... Arrays>
KOKKOS_FORCEINLINE_FUNCTION void for_elements_in(const Team& team, std::size_t slices, std::size_t rows,
                                                 std::size_t columns, const Of& of, const Body& body,
                                                 const Arrays&... arrays) {
  constexpr int at_once = chunks_ahead<Arrays...>;
  const std::size_t chunks = columns / width, stride = slices * chunks, end = rows * chunks;
  for_chunks_of_thread<width>(team, slices, chunks, of, [=](std::size_t slice, std::size_t column, const auto& held) {
    const auto each = [&](unsigned j, auto&... element) { body(held[j], element...); };
    for (std::size_t first = slice * chunks + column / width; first < end; first += at_once * stride) {
      map_held<width, at_once>(each, first, stride, end,
                               HeldChunks<Arrays, width, at_once>(arrays, first, stride, end)...);
    }
  });
}

template <class Team, class Of, class Body, class... Arrays>
KOKKOS_FORCEINLINE_FUNCTION void for_elements(const Team& team, std::size_t rows, std::size_t columns, const Of& of,
                                              const Body& body, const Arrays&... arrays) {
  constexpr std::size_t width = chunk_width<Arrays...>;
  const std::size_t slices = row_slices(columns, width);
  if (columns % width == 0 && are_aligned(arrays...)) {
    for_elements_in<width>(team, slices, rows, columns, of, body, arrays...);
  } else {
    for_elements_in<1>(team, slices, rows, columns, of, body, arrays...);
  }
}

/// Returns the shape of a device's team that calls sum_rows for `count` sums of arrays of T.
template <std::size_t count, class T>
TeamShape row_sums_shape(const ExecutionSpace& space, std::size_t columns) {
  const std::size_t slices = row_slices(columns, access_bytes / sizeof(T));
  return {.threads = team_size(space),
          .scratch_bytes = slices > 1 ? count * slices * columns * sizeof(float) + access_bytes : 0};
}

/// Returns the memory in which sum_rows keeps the sums of slices. To be called once by a team.
template <std::size_t count, class T>
KOKKOS_FORCEINLINE_FUNCTION float* row_sums(const HostTeam&, std::size_t) {
  return nullptr;
}
template <std::size_t count, class T, class Team>
KOKKOS_FORCEINLINE_FUNCTION float* row_sums(const Team& team, std::size_t columns) {
  const std::size_t slices = row_slices(columns, access_bytes / sizeof(T));
  if (slices == 1) return nullptr;
  return static_cast<float*>(team.team_scratch(0).get_shmem_aligned(
      static_cast<std::ptrdiff_t>(count * slices * columns * sizeof(float)), access_bytes));
}

/// Sets `to` to the sums over `rows` rows of term(of(c), element of each array ...), which is called once per element.
/// Four rows are added up before they are added to the sum.
template <std::size_t count, class Of, class Term, class... Arrays>
KOKKOS_FORCEINLINE_FUNCTION void sum_rows(const HostTeam& team, float*, std::size_t rows, std::size_t columns,
                                          const ColumnSums<count>& to, const Of& of, const Term& term,
                                          const Arrays&... arrays) {
  constexpr std::size_t at_once = 4;
  const auto at = [=](std::size_t row, std::size_t c) { return term(of(c), element_of(arrays, row * columns + c)...); };
  team_for(team, columns, [=](std::size_t c) {
    for (std::size_t k = 0; k < count; ++k) to.sums[k][c] = 0.0f;
  });
  const std::size_t whole = rows - rows % at_once;
  for (std::size_t row = 0; row < whole; row += at_once) {
    team_for(team, columns, [=](std::size_t c) {
      SumTerms<count> sum = at(row, c);
      for (std::size_t k = 1; k < at_once; ++k) sum += at(row + k, c);
      to.add(c, sum);
    });
  }
  for (std::size_t row = whole; row < rows; ++row) {
    team_for(team, columns, [=](std::size_t c) { to.add(c, at(row, c)); });
  }
}

template <std::size_t width, std::size_t count, class Team, class Of, class Term, class... Arrays>
KOKKOS_FORCEINLINE_FUNCTION void sum_rows_in(const Team& team, std::size_t slices, float* of_slices, std::size_t rows,
                                             std::size_t columns, const ColumnSums<count>& to, const Of& of,
                                             const Term& term, const Arrays&... arrays) {
  constexpr int at_once = chunks_ahead<Arrays...>;
  const std::size_t chunks = columns / width, stride = slices * chunks, end = rows * chunks;
  for_chunks_of_thread<width>(team, slices, chunks, of, [=](std::size_t slice, std::size_t column, const auto& held) {
    SumTerms<count> sums[width] = {};
    const auto each = [&](unsigned j, auto&... element) { sums[j] += term(held[j], element...); };
    for (std::size_t first = slice * chunks + column / width; first < end; first += at_once * stride) {
      map_held<width, at_once>(each, first, stride, end,
                               HeldChunks<Arrays, width, at_once>(arrays, first, stride, end)...);
    }
    MYLOS_UNROLLED
    for (std::size_t k = 0; k < count; ++k) {
      float* const sum = slices == 1 ? to.sums[k] : of_slices + (k * slices + slice) * columns;
      MYLOS_UNROLLED
      for (unsigned j = 0; j < width; ++j) sum[column + j] = sums[j].value[k];
    }
  });
  if (slices == 1) return;
  team_barrier(team);
  team_for(team, columns, [=](std::size_t c) {
    MYLOS_UNROLLED
    for (std::size_t k = 0; k < count; ++k) {
      float sum = 0.0f;
      for (std::size_t slice = 0; slice < slices; ++slice) sum += of_slices[(k * slices + slice) * columns + c];
      to.sums[k][c] = sum;
    }
  });
}

/// The sums of the slices are added in order. A barrier must follow before the team reads the sums or uses `of_slices`
/// again.
template <std::size_t count, class Team, class Of, class Term, class... Arrays>
KOKKOS_FORCEINLINE_FUNCTION void sum_rows(const Team& team, float* of_slices, std::size_t rows, std::size_t columns,
                                          const ColumnSums<count>& to, const Of& of, const Term& term,
                                          const Arrays&... arrays) {
  constexpr std::size_t width = chunk_width<Arrays...>;
  const std::size_t slices = row_slices(columns, width);
  if (columns % width == 0 && are_aligned(arrays...)) {
    sum_rows_in<width>(team, slices, of_slices, rows, columns, to, of, term, arrays...);
  } else {
    sum_rows_in<1>(team, slices, of_slices, rows, columns, to, of, term, arrays...);
  }
}

/// Threads per channel of a device's team when partial sums are added up: a constant, so that bits depend on sizes
/// only.
inline constexpr std::size_t block_slices = 8;

/// Returns the shape of a device's team that calls for_block_sums<count>.
template <std::size_t count>
TeamShape block_sums_shape(const ExecutionSpace& space) {
  return {.threads = team_size_for(space, block_slices * channel_group),
          .scratch_bytes = block_slices * channel_group * sizeof(BlockTerms<count>) + access_bytes};
}

/// Returns the memory in which for_block_sums<count> keeps the sums of slices. To be called once by a team.
template <std::size_t count>
KOKKOS_FORCEINLINE_FUNCTION BlockTerms<count>* slice_sums(const HostTeam&) {
  return nullptr;
}
template <std::size_t count, class Team>
KOKKOS_FORCEINLINE_FUNCTION BlockTerms<count>* slice_sums(const Team& team) {
  return static_cast<BlockTerms<count>*>(team.team_scratch(0).get_shmem_aligned(
      static_cast<std::ptrdiff_t>(block_slices * channel_group * sizeof(BlockTerms<count>)), access_bytes));
}

/// Calls then(c, sums) for each of `columns` channels, at most channel_group. sums[k] is the sum of term(block,
/// c).value[k] over blocks [first, last) in double, in order or, on a device, in the order of slices.
template <std::size_t count, class Term, class Then>
KOKKOS_FORCEINLINE_FUNCTION void for_block_sums(const HostTeam& team, BlockTerms<count>*, std::size_t first,
                                                std::size_t last, std::size_t columns, const Term& term,
                                                const Then& then) {
  double sums[count][channel_group] = {};
  for (std::size_t block = first; block < last; ++block) {
    team_for(team, columns, [&](std::size_t c) {
      const BlockTerms<count> terms = term(block, c);
      for (std::size_t k = 0; k < count; ++k) sums[k][c] += terms.value[k];
    });
  }
  for (std::size_t c = 0; c < columns; ++c) {
    double of_channel[count];
    for (std::size_t k = 0; k < count; ++k) of_channel[k] = sums[k][c];
    then(c, of_channel);
  }
}

/// Slice s adds up the blocks first + s, first + s + block_slices ... Several are loaded ahead: a layer has up to
/// 12,544 blocks for each group, and a thread that loads them one after the other takes 0.4 us for each.
template <std::size_t count, class Team, class Term, class Then>
KOKKOS_FORCEINLINE_FUNCTION void for_block_sums(const Team& team, BlockTerms<count>* of_slices, std::size_t first,
                                                std::size_t last, std::size_t columns, const Term& term,
                                                const Then& then) {
  constexpr std::size_t ahead = 8;
  for_items_of_thread(team, block_slices * columns, [=](std::size_t item) {
    const std::size_t slice = item / columns, c = item % columns;
    BlockTerms<count> sums = {};
    for (std::size_t block = first + slice; block < last; block += ahead * block_slices) {
      BlockTerms<count> terms[ahead] = {};
      MYLOS_UNROLLED
      for (std::size_t i = 0; i < ahead; ++i) {
        if (block + i * block_slices < last) terms[i] = term(block + i * block_slices, c);
      }
      MYLOS_UNROLLED
      for (std::size_t i = 0; i < ahead; ++i) {
        for (std::size_t k = 0; k < count; ++k) sums.value[k] += terms[i].value[k];
      }
    }
    of_slices[item] = sums;
  });
  team_barrier(team);
  team_for(team, columns, [=](std::size_t c) {
    double sums[count] = {};
    for (std::size_t slice = 0; slice < block_slices; ++slice) {
      for (std::size_t k = 0; k < count; ++k) sums[k] += of_slices[slice * columns + c].value[k];
    }
    then(c, sums);
  });
  team_barrier(team);  // the sums of the next group replace these
}

/// The normalisation of one channel.
struct ChannelNorm {
  float mean, scale, bias;

  KOKKOS_FORCEINLINE_FUNCTION float operator()(float x) const { return (x - mean) * scale + bias; }
};

/// The normalisation of an array, for one group.
template <class T>
struct ChannelNormalizer {
  const float *mean, *inverse;
  const T *weight, *bias;

  KOKKOS_FORCEINLINE_FUNCTION ChannelNormalizer(const BatchNormInput<T>& input, const ImageGroups& groups,
                                                std::size_t image) {
    const BatchNormStatistics& statistics = input.statistics;
    const std::size_t row = statistics.mean.extent(0) == 1 ? 0 : groups.of_images(image);
    mean = statistics.mean.data() + row * statistics.mean.extent(1);
    inverse = statistics.inverse.data() + row * statistics.mean.extent(1);
    weight = input.weight.data();
    bias = input.bias.data();
  }
  KOKKOS_FORCEINLINE_FUNCTION ChannelNorm operator()(std::size_t c) const {
    return {mean[c], inverse[c] * float(weight[c]), float(bias[c])};
  }
};

/// Errors: std::invalid_argument if an array does not match the groups' images.
template <class View>
void check_rows(const ImageGroups& groups, const View& array, std::size_t channels, const char* name) {
  const std::size_t rows = groups.images() * groups.pixels;
  require(array.extent(0) == rows && array.extent(1) == channels,
          fmt::format("BatchNorm of {} images of {} pixels and {} channels: {} is {} x {}", groups.images(),
                      groups.pixels, channels, name, array.extent(0), array.extent(1)));
}

template <class T>
void check_input(const ImageGroups& groups, const BatchNormInput<T>& input) {
  const std::size_t channels = input.weight.size();
  check_rows(groups, input.x, channels, "x");
  const Matrix<float>& mean = input.statistics.mean;
  require(input.bias.size() == channels && mean.extent(1) == channels && input.statistics.inverse.extent(1) == channels,
          fmt::format("BatchNorm of {} channels: bias has {}, statistics {} and {}", channels, input.bias.size(),
                      mean.extent(1), input.statistics.inverse.extent(1)));
  require(
      (mean.extent(0) == 1 || mean.extent(0) == groups.count()) && input.statistics.inverse.extent(0) == mean.extent(0),
      fmt::format("BatchNorm of {} groups: statistics of {} and {}", groups.count(), mean.extent(0),
                  input.statistics.inverse.extent(0)));
}

/// The arrays in the workspace.
struct Workspace {
  Matrix<float> first, second;        ///< (blocks, C)
  Matrix<float> scale, slope, shift;  ///< (S, C), for the backward pass
};

Workspace workspace_of(const ImageGroups& groups, std::size_t channels, const Vector<float>& memory);

}  // namespace mylos::batch_norm
