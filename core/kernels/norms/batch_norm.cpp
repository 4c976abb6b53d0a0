#include "core/kernels/norms/batch_norm.hpp"

#include "core/kernels/norms/batch_norm_blocks.hpp"
#include "core/work.hpp"

#include <cstddef>

namespace mylos {
namespace batch_norm {

Workspace workspace_of(const ImageGroups& groups, std::size_t channels, const Vector<float>& memory) {
  const std::size_t blocks = groups.images() * StagingBlocks(groups.pixels, channels).of_image;
  const std::size_t needed = batch_norm_workspace(groups.count(), groups.images(), groups.pixels, channels);
  require(memory.size() >= needed,
          fmt::format("BatchNorm of {} images of {} pixels and {} channels: the workspace has {} floats, {} are needed",
                      groups.images(), groups.pixels, channels, memory.size(), needed));
  std::size_t used = 0;
  const auto take = [&](std::size_t rows) {
    used += rows * channels;
    return as_matrix(slice(memory, used - rows * channels, used), rows, channels);
  };
  const Matrix<float> first = take(blocks), second = take(blocks);
  const Matrix<float> scale = take(groups.count()), slope = take(groups.count());
  return {first, second, scale, slope, take(groups.count())};
}

}  // namespace batch_norm

namespace {

using batch_norm::ChannelNormalizer;
using batch_norm::StagingBlocks;
using batch_norm::SumTerms;

/// Computes, for one block, first = mean of its rows and second = sum of squared differences from it. Sums differences
/// from the first row, which are small even if the mean is large.
template <class T>
struct NormBlockStatistics {
  StagingBlocks blocks;
  ConstMatrix<T> x;
  batch_norm::Workspace partial;

  /// Two passes over the block, which stays in cache.
  KOKKOS_INLINE_FUNCTION void operator()(const HostTeam& team, std::size_t block) const {
    const std::size_t channels = x.extent(1);
    const batch_norm::BlockRows rows = blocks.range(block);
    const T* const in = x.data() + rows.begin * channels;
    float* const mean = partial.first.data() + block * channels;
    float* const squares = partial.second.data() + block * channels;
    batch_norm::sum_rows<1>(
        team, nullptr, rows.count, channels, {{mean}}, [=](std::size_t c) { return float(in[c]); },
        [](float first, const T& value) { return SumTerms<1>{{float(value) - first}}; }, in);
    const float share = 1.0f / static_cast<float>(rows.count);
    team_for(team, channels, [=](std::size_t c) { mean[c] = float(in[c]) + mean[c] * share; });
    batch_norm::sum_rows<1>(
        team, nullptr, rows.count, channels, {{squares}}, [=](std::size_t c) { return mean[c]; },
        [](float center, const T& value) {
          const float difference = float(value) - center;
          return SumTerms<1>{{difference * difference}};
        },
        in);
  }

  /// One pass over the block, because the blocks of all teams do not fit in a device's cache. Squared differences from
  /// the first of n rows sum up to at most n + 1 times those from the mean, which multiplies the rounding of the sums
  /// by as much in the worst case.
  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t block) const {
    const std::size_t channels = x.extent(1);
    const batch_norm::BlockRows rows = blocks.range(block);
    const T* const in = x.data() + rows.begin * channels;
    float* const mean = partial.first.data() + block * channels;
    float* const squares = partial.second.data() + block * channels;
    batch_norm::sum_rows<2>(
        team, batch_norm::row_sums<2, T>(team, channels), rows.count, channels, {{mean, squares}},
        [=](std::size_t c) { return float(in[c]); },
        [](float first, const T& value) {
          const float difference = float(value) - first;
          return SumTerms<2>{{difference, difference * difference}};
        },
        in);
    team_barrier(team);
    const float share = 1.0f / static_cast<float>(rows.count);
    team_for(team, channels, [=](std::size_t c) {
      const float difference = mean[c] * share;
      squares[c] -= mean[c] * difference;
      mean[c] = float(in[c]) + difference;
    });
  }
};

/// Computes the statistics of a group, for some channels, from those of its blocks (Chan, Golub, LeVeque 1979).
struct NormGroupStatistics {
  StagingBlocks blocks;
  ImageGroups groups;
  batch_norm::Workspace partial;
  float epsilon;
  BatchNormStatistics statistics;
  BatchNormObserved observed;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t task) const {
    const std::size_t channels = statistics.mean.extent(1), parts = batch_norm::channel_groups(channels);
    const std::size_t group = task / parts, begin = task % parts * batch_norm::channel_group, rest = channels - begin;
    const std::size_t first = groups.starts(group) * blocks.of_image;
    const std::size_t last = groups.starts(group + 1) * blocks.of_image;
    const float* const means = partial.first.data() + begin;
    const float *const squares = partial.second.data() + begin, *const pivot = means + first * channels;
    const NormGroupStatistics self = *this;
    // Differences from the first block's mean are small even if the mean is large.
    batch_norm::for_block_sums<2>(
        team, batch_norm::slice_sums<2>(team), first, last,
        rest < batch_norm::channel_group ? rest : batch_norm::channel_group,
        [=](std::size_t block, std::size_t c) {
          const double count = static_cast<double>(self.blocks.range(block).count);
          const double difference = double(means[block * channels + c]) - double(pivot[c]);
          const double sum = count * difference;
          return batch_norm::BlockTerms<2>{{sum, double(squares[block * channels + c]) + sum * difference}};
        },
        [=](std::size_t c, const double(&sums)[2]) { self.set(group, begin + c, double(pivot[c]), sums[0], sums[1]); });
  }

  /// Sets the statistics from the sums of differences from the pivot and of their squares.
  KOKKOS_FORCEINLINE_FUNCTION void set(std::size_t group, std::size_t c, double pivot, double sum,
                                       double squares) const {
    const double count = static_cast<double>((groups.starts(group + 1) - groups.starts(group)) * groups.pixels);
    const double mean = pivot + sum / count, spread = squares - sum * sum / count;
    const double all = spread > 0.0 || spread != spread ? spread : 0.0;  // preserves NaN
    statistics.mean(group, c) = static_cast<float>(mean);
    statistics.inverse(group, c) = static_cast<float>(1.0 / Kokkos::sqrt(all / count + double(epsilon)));
    if (observed.values.data() == nullptr) return;
    observed.values(group, observed.mean + c) = static_cast<float>(mean);
    observed.values(group, observed.variance + c) = static_cast<float>(all / (count > 1.0 ? count - 1.0 : 1.0));
  }
};

struct SameValue {
  KOKKOS_FORCEINLINE_FUNCTION float operator()(float value) const { return value; }
};
/// Returns SameValue for each channel.
struct SameValues {
  KOKKOS_FORCEINLINE_FUNCTION SameValue operator()(std::size_t) const { return {}; }
};

/// The residual that is added to BN(x) before the ReLU: its array, and its normalisation for an image. An absent array
/// adds zero.
template <class T>
struct NoResidual {
  using OfChannel = SameValue;

  KOKKOS_FORCEINLINE_FUNCTION Absent<T> array(std::size_t) const { return {}; }
  KOKKOS_FORCEINLINE_FUNCTION SameValues of_image(const ImageGroups&, std::size_t) const { return {}; }
};

template <class T>
struct PlainResidual {
  using OfChannel = SameValue;

  ConstMatrix<T> residual;

  KOKKOS_FORCEINLINE_FUNCTION const T* array(std::size_t first) const { return residual.data() + first; }
  KOKKOS_FORCEINLINE_FUNCTION SameValues of_image(const ImageGroups&, std::size_t) const { return {}; }
};

template <class T>
struct NormalizedResidual {
  using OfChannel = batch_norm::ChannelNorm;

  BatchNormInput<T> input;

  KOKKOS_FORCEINLINE_FUNCTION const T* array(std::size_t first) const { return input.x.data() + first; }
  KOKKOS_FORCEINLINE_FUNCTION ChannelNormalizer<T> of_image(const ImageGroups& groups, std::size_t image) const {
    return {input, groups, image};
  }
};

template <class T, class Residual>
struct NormalizeRelu {
  StagingBlocks blocks;
  ImageGroups groups;
  BatchNormInput<T> input;
  Residual residual;
  Matrix<T> y;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t block) const {
    const std::size_t channels = y.extent(1), image = blocks.image(block);
    const batch_norm::BlockRows rows = blocks.range(block);
    const std::size_t begin = rows.begin * channels;
    const ChannelNormalizer<T> norms(input, groups, image);
    const auto others = residual.of_image(groups, image);
    batch_norm::for_elements(
        team, rows.count, channels,
        [=](std::size_t c) {
          return Channel{norms(c), others(c)};
        },
        [](const Channel& of, const T& in, const T& other, T& out) {
          const float sum = of.norm(float(in)) + of.other(float(other));
          out = T(sum < 0.0f ? 0.0f : sum);  // preserves NaN
        },
        static_cast<const T*>(input.x.data() + begin), residual.array(begin), written(y.data() + begin));
  }

  struct Channel {
    batch_norm::ChannelNorm norm;
    typename Residual::OfChannel other;
  };
};

template <class T, class Residual>
void normalize_relu(const char* label, const Work& work, const ExecutionSpace& space, const ImageGroups& groups,
                    const BatchNormInput<T>& input, const Residual& residual, const Matrix<T>& y) {
  const std::size_t channels = input.weight.size();
  const StagingBlocks blocks(groups.pixels, channels);
  for_each_row(with_work(label, work), space, groups.images() * blocks.of_image,
               NormalizeRelu<T, Residual>{blocks, groups, input, residual, y});
}

}  // namespace

std::size_t batch_norm_workspace(std::size_t groups, std::size_t images, std::size_t pixels, std::size_t channels) {
  return (2 * images * StagingBlocks(pixels, channels).of_image + 3 * groups) * channels;
}

template <class T>
void batch_norm_statistics(const ExecutionSpace& space, const ImageGroups& groups, const ConstMatrix<T>& x,
                           float epsilon, const BatchNormStatistics& statistics, const BatchNormObserved& observed,
                           const Vector<float>& workspace) {
  const std::size_t channels = x.extent(1);
  batch_norm::check_rows(groups, x, channels, "x");
  require(statistics.mean.extent(0) == groups.count() && statistics.mean.extent(1) == channels &&
              statistics.inverse.extent(0) == groups.count() && statistics.inverse.extent(1) == channels,
          fmt::format("BatchNorm of {} groups and {} channels: statistics are {} x {} and {} x {}", groups.count(),
                      channels, statistics.mean.extent(0), statistics.mean.extent(1), statistics.inverse.extent(0),
                      statistics.inverse.extent(1)));
  const StagingBlocks blocks(groups.pixels, channels);
  const batch_norm::Workspace partial = batch_norm::workspace_of(groups, channels, workspace);
  const Work sums = work_of(2 * partial.first.size(), 0.0, sizeof(float));
  for_each_row(with_work("mylos::batch_norm::block_statistics", work_of(x.size(), 5.0, sizeof(T)) + sums), space,
               partial.first.extent(0), NormBlockStatistics<T>{blocks, x, partial},
               batch_norm::row_sums_shape<2, T>(space, channels));
  for_each_row(with_work("mylos::batch_norm::group_statistics", work_of(partial.first.size(), 6.0, 2 * sizeof(float))),
               space, groups.count() * batch_norm::channel_groups(channels),
               NormGroupStatistics{blocks, groups, partial, epsilon, statistics, observed},
               batch_norm::block_sums_shape<2>(space));
}

void running_batch_norm_statistics(const ExecutionSpace& space, const ConstVector<float>& mean,
                                   const ConstVector<float>& variance, float epsilon,
                                   const BatchNormStatistics& statistics) {
  const Matrix<float> means = statistics.mean, inverses = statistics.inverse;
  require(means.size() == mean.size() && inverses.size() == mean.size() && variance.size() == mean.size(),
          fmt::format("BatchNorm: {} running means and {} variances for {} and {}", mean.size(), variance.size(),
                      means.size(), inverses.size()));
  for_each_element(
      with_work("mylos::batch_norm::running", work_of(mean.size(), 3.0, 4 * sizeof(float))), space, mean.size(),
      KOKKOS_LAMBDA(std::size_t c) {
        means(0, c) = mean(c);
        inverses(0, c) = 1.0f / Kokkos::sqrt(variance(c) + epsilon);
      });
}

template <class T>
void batch_norm_relu(const ExecutionSpace& space, const ImageGroups& groups, const BatchNormInput<T>& input,
                     const Matrix<T>& y) {
  batch_norm::check_input(groups, input);
  batch_norm::check_rows(groups, y, input.weight.size(), "y");
  normalize_relu("mylos::batch_norm::relu", work_of(y.size(), 5.0, 2 * sizeof(T)), space, groups, input,
                 NoResidual<T>{}, y);
}

template <class T>
void batch_norm_residual_relu(const ExecutionSpace& space, const ImageGroups& groups, const BatchNormInput<T>& input,
                              const ConstMatrix<T>& residual, const Matrix<T>& y) {
  batch_norm::check_input(groups, input);
  batch_norm::check_rows(groups, residual, input.weight.size(), "the residual");
  batch_norm::check_rows(groups, y, input.weight.size(), "y");
  normalize_relu("mylos::batch_norm::residual_relu", work_of(y.size(), 6.0, 3 * sizeof(T)), space, groups, input,
                 PlainResidual<T>{residual}, y);
}

template <class T>
void batch_norm_shortcut_relu(const ExecutionSpace& space, const ImageGroups& groups, const BatchNormInput<T>& input,
                              const BatchNormInput<T>& shortcut, const Matrix<T>& y) {
  batch_norm::check_input(groups, input);
  batch_norm::check_input(groups, shortcut);
  batch_norm::check_rows(groups, shortcut.x, input.weight.size(), "the shortcut");
  batch_norm::check_rows(groups, y, input.weight.size(), "y");
  normalize_relu("mylos::batch_norm::shortcut_relu", work_of(y.size(), 10.0, 3 * sizeof(T)), space, groups, input,
                 NormalizedResidual<T>{shortcut}, y);
}

#define MYLOS_INSTANTIATE(T)                                                                                          \
  template void batch_norm_statistics<T>(const ExecutionSpace&, const ImageGroups&, const ConstMatrix<T>&, float,     \
                                         const BatchNormStatistics&, const BatchNormObserved&, const Vector<float>&); \
  template void batch_norm_relu<T>(const ExecutionSpace&, const ImageGroups&, const BatchNormInput<T>&,               \
                                   const Matrix<T>&);                                                                 \
  template void batch_norm_residual_relu<T>(const ExecutionSpace&, const ImageGroups&, const BatchNormInput<T>&,      \
                                            const ConstMatrix<T>&, const Matrix<T>&);                                 \
  template void batch_norm_shortcut_relu<T>(const ExecutionSpace&, const ImageGroups&, const BatchNormInput<T>&,      \
                                            const BatchNormInput<T>&, const Matrix<T>&);
MYLOS_INSTANTIATE(float)
MYLOS_INSTANTIATE(bfloat16)
MYLOS_INSTANTIATE(half)
#undef MYLOS_INSTANTIATE

}  // namespace mylos
