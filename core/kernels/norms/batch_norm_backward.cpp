#include "core/kernels/norms/batch_norm_blocks.hpp"
#include "core/work.hpp"

namespace mylos {
namespace {

using batch_norm::ChannelNormalizer;
using batch_norm::StagingBlocks;
using batch_norm::SumTerms;

/// The mask of the ReLU after BN(x): none, recomputed, or from the stored result.
enum class ReluMask { all, recomputed, of_result };

/// Returns `value` if `passes`, else 0. A conditional expression would be compiled to a branch around the load of the
/// value, which prevents vectorisation. A non-finite value becomes NaN, which skips the step as the value itself would.
KOKKOS_FORCEINLINE_FUNCTION float masked(bool passes, float value) { return value * (passes ? 1.0f : 0.0f); }

/// The arrays of a backward pass; g is the masked gradient of BN(x), (dy + also).
template <class T>
struct NormBackwardArrays {
  StagingBlocks blocks;
  ImageGroups groups;
  BatchNormInput<T> input;
  ConstMatrix<T> y;  ///< read if ReluMask::of_result
  ConstMatrix<T> dy;
  ConstMatrix<T> also;  ///< read if `adds`
  Matrix<T> stored;     ///< destination of g, if it is stored
  Matrix<T> dx;
  batch_norm::Workspace work;
};

/// Computes, for one block, first = sum of g and second = sum of g (x - mean).
template <class T, ReluMask mask, bool adds>
struct NormGradientSums {
  NormBackwardArrays<T> arrays;

  static constexpr bool stores = adds || mask == ReluMask::of_result;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t block) const {
    const std::size_t channels = arrays.input.x.extent(1);
    const batch_norm::BlockRows rows = arrays.blocks.range(block);
    const std::size_t begin = rows.begin * channels;
    const ChannelNormalizer<T> norms(arrays.input, arrays.groups, arrays.blocks.image(block));
    const T *const x = arrays.input.x.data() + begin, *const dy = arrays.dy.data() + begin;
    const T *const y = arrays.y.data() + begin, *const also = arrays.also.data() + begin;
    T* const stored = arrays.stored.data() + begin;
    batch_norm::sum_rows<2>(
        team, batch_norm::row_sums<2, T>(team, channels), rows.count, channels,
        {{arrays.work.first.data() + block * channels, arrays.work.second.data() + block * channels}}, norms,
        [](const batch_norm::ChannelNorm& norm, const T& in, const T& gradient, [[maybe_unused]] const T& result,
           [[maybe_unused]] const T& other, [[maybe_unused]] auto&& destination) {
          float g = float(gradient);
          if constexpr (adds) g = float(T(g + float(other)));
          if constexpr (mask == ReluMask::recomputed) g = masked(norm(float(in)) > 0.0f, g);
          if constexpr (mask == ReluMask::of_result) g = masked(float(result) > 0.0f, g);
          if constexpr (stores) destination = T(g);
          return SumTerms<2>{{g, g * (float(in) - norm.mean)}};
        },
        x, dy, if_present<mask == ReluMask::of_result>(y), if_present<adds>(also), if_present<stores>(written(stored)));
  }
};

/// Computes the coefficients of dx = scale g + slope (x - mean) + shift, with scale = inverse weight, slope = -scale
/// inverse^2 mean(g (x - mean)) and shift = -scale mean(g), for some channels of all groups; adds to the gradients of
/// weight and bias, in the order of groups.
template <class T>
struct NormGroupGradients {
  NormBackwardArrays<T> arrays;
  BatchNormGradients gradients;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t task) const {
    const std::size_t channels = arrays.input.x.extent(1);
    const std::size_t begin = task * batch_norm::channel_group, rest = channels - begin;
    const float *const first = arrays.work.first.data() + begin, *const second = arrays.work.second.data() + begin;
    const ImageGroups& groups = arrays.groups;
    const NormGroupGradients self = *this;
    batch_norm::BlockTerms<2>* const of_slices = batch_norm::slice_sums<2>(team);
    for (std::size_t group = 0; group + 1 < groups.starts.size(); ++group) {
      batch_norm::for_block_sums<2>(
          team, of_slices, groups.starts(group) * arrays.blocks.of_image,
          groups.starts(group + 1) * arrays.blocks.of_image,
          rest < batch_norm::channel_group ? rest : batch_norm::channel_group,
          [=](std::size_t block, std::size_t c) {
            const std::size_t i = block * channels + c;
            return batch_norm::BlockTerms<2>{{double(first[i]), double(second[i])}};
          },
          [=](std::size_t c, const double(&sums)[2]) { self.set(group, begin + c, sums[0], sums[1]); });
    }
  }

  /// Sets the coefficients from the sums of g and of g (x - mean). One thread processes all groups of a channel in
  /// order.
  KOKKOS_FORCEINLINE_FUNCTION void set(std::size_t group, std::size_t c, double sum, double products) const {
    const float inverse = arrays.input.statistics.inverse(group, c);
    const float scale = inverse * float(arrays.input.weight(c));
    const std::size_t images = arrays.groups.starts(group + 1) - arrays.groups.starts(group);
    const double share = 1.0 / static_cast<double>(images * arrays.groups.pixels);
    gradients.dbias(c) += static_cast<float>(sum);
    gradients.dweight(c) += static_cast<float>(products) * inverse;
    arrays.work.scale(group, c) = scale;
    arrays.work.slope(group, c) = -scale * inverse * inverse * static_cast<float>(products * share);
    arrays.work.shift(group, c) = -scale * static_cast<float>(sum * share);
  }
};

template <class T, bool recomputes_mask>
struct NormInputGradient {
  NormBackwardArrays<T> arrays;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t block) const {
    const std::size_t channels = arrays.input.x.extent(1), image = arrays.blocks.image(block);
    const batch_norm::BlockRows rows = arrays.blocks.range(block);
    const std::size_t begin = rows.begin * channels, of_group = arrays.groups.of_images(image) * channels;
    const float *const scale = arrays.work.scale.data() + of_group, *const slope = arrays.work.slope.data() + of_group;
    const float* const shift = arrays.work.shift.data() + of_group;
    const ChannelNormalizer<T> norms(arrays.input, arrays.groups, image);
    batch_norm::for_elements(
        team, rows.count, channels,
        [=](std::size_t c) {
          return Channel{norms(c), scale[c], slope[c], shift[c]};
        },
        [](const Channel& of, const T& in, const T& dy, T& dx) {
          float g = float(dy);
          if constexpr (recomputes_mask) g = masked(of.norm(float(in)) > 0.0f, g);
          dx = T(of.scale * g + (of.slope * (float(in) - of.norm.mean) + of.shift));
        },
        static_cast<const T*>(arrays.input.x.data() + begin), static_cast<const T*>(arrays.dy.data() + begin),
        written(arrays.dx.data() + begin));
  }

  /// The coefficients of a channel.
  struct Channel {
    batch_norm::ChannelNorm norm;
    float scale, slope, shift;
  };
};

/// Returns the work of a kernel that reads and writes `count` arrays.
template <class T>
Work backward_work(const NormBackwardArrays<T>& arrays, double flops, double count) {
  return work_of(arrays.input.x.size(), flops, count * sizeof(T));
}

template <ReluMask mask, bool adds, class T>
void sum_gradients(const ExecutionSpace& space, const NormBackwardArrays<T>& arrays) {
  using Sums = NormGradientSums<T, mask, adds>;
  const double flops = 4.0 + (adds ? 1.0 : 0.0) + (mask == ReluMask::recomputed ? 4.0 : 0.0);
  const double count =
      2.0 + (adds ? 1.0 : 0.0) + (mask == ReluMask::of_result ? 1.0 : 0.0) + (Sums::stores ? 1.0 : 0.0);
  for_each_row(
      with_work("mylos::batch_norm::gradient_sums",
                backward_work(arrays, flops, count) + work_of(2 * arrays.work.first.size(), 0.0, sizeof(float))),
      space, arrays.work.first.extent(0), Sums{arrays},
      batch_norm::row_sums_shape<2, T>(space, arrays.input.x.extent(1)));
}

/// Computes the gradients of weight and bias, and dx, from the sums over blocks.
template <bool recomputes_mask, class T>
void spread_gradients(const ExecutionSpace& space, const NormBackwardArrays<T>& arrays,
                      const BatchNormGradients& gradients) {
  for_each_row(
      with_work("mylos::batch_norm::group_gradients", work_of(arrays.work.first.size(), 2.0, 2 * sizeof(float))), space,
      batch_norm::channel_groups(arrays.input.x.extent(1)), NormGroupGradients<T>{arrays, gradients},
      batch_norm::block_sums_shape<2>(space));
  for_each_row(with_work("mylos::batch_norm::input_gradient", backward_work(arrays, recomputes_mask ? 9.0 : 5.0, 3.0)),
               space, arrays.work.first.extent(0), NormInputGradient<T, recomputes_mask>{arrays});
}

template <class T>
NormBackwardArrays<T> backward_arrays(const ImageGroups& groups, const BatchNormInput<T>& input,
                                      const ConstMatrix<T>& dy, const Matrix<T>& dx,
                                      const BatchNormGradients& gradients, const Vector<float>& workspace) {
  const std::size_t channels = input.weight.size();
  batch_norm::check_input(groups, input);
  require(input.statistics.mean.extent(0) == groups.count(),
          fmt::format("BatchNorm's gradient of {} groups: statistics of {}", groups.count(),
                      input.statistics.mean.extent(0)));
  batch_norm::check_rows(groups, dy, channels, "dy");
  batch_norm::check_rows(groups, dx, channels, "dx");
  require(gradients.dweight.size() == channels && gradients.dbias.size() == channels,
          fmt::format("BatchNorm of {} channels: gradients of {} and {}", channels, gradients.dweight.size(),
                      gradients.dbias.size()));
  return {.blocks = StagingBlocks(groups.pixels, channels),
          .groups = groups,
          .input = input,
          .y = input.x,
          .dy = dy,
          .also = dy,
          .stored = dx,
          .dx = dx,
          .work = batch_norm::workspace_of(groups, channels, workspace)};
}

}  // namespace

template <class T>
void batch_norm_backward(const ExecutionSpace& space, const ImageGroups& groups, const BatchNormInput<T>& input,
                         const ConstMatrix<T>& dy, const Matrix<T>& dx, const BatchNormGradients& gradients,
                         const Vector<float>& workspace) {
  const NormBackwardArrays<T> arrays = backward_arrays(groups, input, dy, dx, gradients, workspace);
  sum_gradients<ReluMask::all, false>(space, arrays);
  spread_gradients<false>(space, arrays, gradients);
}

template <class T>
void batch_norm_relu_backward(const ExecutionSpace& space, const ImageGroups& groups, const BatchNormInput<T>& input,
                              const Matrix<T>& dy, const ConstMatrix<T>& also, const Matrix<T>& dx,
                              const BatchNormGradients& gradients, const Vector<float>& workspace) {
  NormBackwardArrays<T> arrays = backward_arrays<T>(groups, input, dy, dx, gradients, workspace);
  if (also.size() == 0) {
    sum_gradients<ReluMask::recomputed, false>(space, arrays);
    return spread_gradients<true>(space, arrays, gradients);
  }
  batch_norm::check_rows(groups, also, input.weight.size(), "the other gradient");
  arrays.also = also;
  arrays.stored = dy;
  sum_gradients<ReluMask::recomputed, true>(space, arrays);
  spread_gradients<false>(space, arrays, gradients);
}

template <class T>
void batch_norm_sum_relu_backward(const ExecutionSpace& space, const ImageGroups& groups,
                                  const BatchNormInput<T>& input, const ConstMatrix<T>& y, const Matrix<T>& dy,
                                  const ConstMatrix<T>& also, const Matrix<T>& dx, const BatchNormGradients& gradients,
                                  const Vector<float>& workspace) {
  NormBackwardArrays<T> arrays = backward_arrays<T>(groups, input, dy, dx, gradients, workspace);
  batch_norm::check_rows(groups, y, input.weight.size(), "y");
  arrays.y = y;
  arrays.stored = dy;
  if (also.size() == 0) {
    sum_gradients<ReluMask::of_result, false>(space, arrays);
  } else {
    batch_norm::check_rows(groups, also, input.weight.size(), "the other gradient");
    arrays.also = also;
    sum_gradients<ReluMask::of_result, true>(space, arrays);
  }
  spread_gradients<false>(space, arrays, gradients);
}

#define MYLOS_INSTANTIATE(T)                                                                                         \
  template void batch_norm_backward<T>(const ExecutionSpace&, const ImageGroups&, const BatchNormInput<T>&,          \
                                       const ConstMatrix<T>&, const Matrix<T>&, const BatchNormGradients&,           \
                                       const Vector<float>&);                                                        \
  template void batch_norm_relu_backward<T>(const ExecutionSpace&, const ImageGroups&, const BatchNormInput<T>&,     \
                                            const Matrix<T>&, const ConstMatrix<T>&, const Matrix<T>&,               \
                                            const BatchNormGradients&, const Vector<float>&);                        \
  template void batch_norm_sum_relu_backward<T>(const ExecutionSpace&, const ImageGroups&, const BatchNormInput<T>&, \
                                                const ConstMatrix<T>&, const Matrix<T>&, const ConstMatrix<T>&,      \
                                                const Matrix<T>&, const BatchNormGradients&, const Vector<float>&);
MYLOS_INSTANTIATE(float)
MYLOS_INSTANTIATE(bfloat16)
MYLOS_INSTANTIATE(half)
#undef MYLOS_INSTANTIATE

}  // namespace mylos
