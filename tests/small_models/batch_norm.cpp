#include "tests/small_models/batch_norm.hpp"

#include "core/kernels/team.hpp"

namespace mylos::small_models {
namespace {

/// One channel of one group: task = group * C + channel.
struct Statistics {
  NormGroups groups;
  ConstMatrix<float> x;
  NormStatistics statistics;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t task) const {
    const std::size_t channels = x.extent(1), group = task / channels, channel = task % channels;
    const std::size_t begin = groups.begin(group), count = groups.begin(group + 1) - begin;
    const float* const in = x.data() + begin * channels + channel;
    const float mean = team_sum(team, count, [=](std::size_t i) { return in[i * channels]; }) / float(count);
    const float squares = team_sum(team, count, [=](std::size_t i) {
      const float difference = in[i * channels] - mean;
      return difference * difference;
    });
    statistics.mean(group, channel) = mean;
    statistics.variance(group, channel) = squares / float(count);
  }
};

/// The terms of y = max(0, gamma x^ + beta) for one element.
struct Normalizer {
  NormStatistics statistics;
  NormParameters parameters;

  /// Statistics common to all groups have one row.
  KOKKOS_INLINE_FUNCTION std::size_t row_of(std::size_t group) const {
    return statistics.mean.extent(0) == 1 ? 0 : group;
  }
  KOKKOS_INLINE_FUNCTION float inverse(std::size_t group, std::size_t channel) const {
    return 1.0f / Kokkos::sqrt(statistics.variance(row_of(group), channel) + parameters.epsilon);
  }
  KOKKOS_INLINE_FUNCTION float normal(std::size_t group, std::size_t channel, float x) const {
    return (x - statistics.mean(row_of(group), channel)) * inverse(group, channel);
  }
};

struct Forward {
  NormGroups groups;
  Normalizer normalizer;
  ConstMatrix<float> x;
  Matrix<float> y;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t row) const {
    const std::size_t group = groups.of_row(row);
    team_for(team, x.extent(1), [=, this](std::size_t c) {
      const float normal = normalizer.normal(group, c, x(row, c));
      const float value = normalizer.parameters.gamma(c) * normal + normalizer.parameters.beta(c);
      y(row, c) = value > 0.0f ? value : 0.0f;
    });
  }
};

/// sums.mean = sum over a group of dy after the ReLU's backward pass; sums.variance = the sum of dy x^.
struct GradientSums {
  NormGroups groups;
  Normalizer normalizer;
  ConstMatrix<float> x, y, dy;
  NormStatistics sums;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t task) const {
    const std::size_t channels = x.extent(1), group = task / channels, c = task % channels;
    const std::size_t begin = groups.begin(group), count = groups.begin(group + 1) - begin;
    sums.mean(group, c) =
        team_sum(team, count, [=, this](std::size_t i) { return y(begin + i, c) > 0.0f ? dy(begin + i, c) : 0.0f; });
    sums.variance(group, c) = team_sum(team, count, [=, this](std::size_t i) {
      return y(begin + i, c) > 0.0f ? dy(begin + i, c) * normalizer.normal(group, c, x(begin + i, c)) : 0.0f;
    });
  }
};

/// dx = gamma / sigma (dy - mean(dy) - x^ mean(dy x^)).
struct InputGradient {
  NormGroups groups;
  Normalizer normalizer;
  ConstMatrix<float> x, y, dy;
  NormStatistics sums;
  Matrix<float> dx;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t row) const {
    const std::size_t group = groups.of_row(row);
    const float share = 1.0f / float(groups.begin(group + 1) - groups.begin(group));
    team_for(team, x.extent(1), [=, this](std::size_t c) {
      const float gradient = y(row, c) > 0.0f ? dy(row, c) : 0.0f;
      const float normal = normalizer.normal(group, c, x(row, c));
      const float centered = gradient - share * (sums.mean(group, c) + normal * sums.variance(group, c));
      dx(row, c) = normalizer.parameters.gamma(c) * normalizer.inverse(group, c) * centered;
    });
  }
};

}  // namespace

void group_statistics(const ExecutionSpace& space, const NormGroups& groups, const ConstMatrix<float>& x,
                      const NormStatistics& statistics) {
  for_each_row("mylos::small_models::group_statistics", space, statistics.mean.size(),
               Statistics{groups, x, statistics});
}

void observe_statistics(const ExecutionSpace& space, const NormGroups& groups, const NormStatistics& statistics,
                        const Matrix<float>& observed, std::size_t mean_column, std::size_t variance_column) {
  const std::size_t channels = statistics.mean.extent(1);
  for_each_element(
      "mylos::small_models::observe_statistics", space, statistics.mean.size(), KOKKOS_LAMBDA(std::size_t i) {
        const std::size_t group = i / channels, c = i % channels;
        const float count = static_cast<float>(groups.begin(group + 1) - groups.begin(group));
        observed(group, mean_column + c) = statistics.mean(group, c);
        observed(group, variance_column + c) = statistics.variance(group, c) * count / (count - 1.0f);
      });
}

void normalize_relu(const ExecutionSpace& space, const NormGroups& groups, const NormStatistics& statistics,
                    const NormParameters& parameters, const ConstMatrix<float>& x, const Matrix<float>& y) {
  for_each_row("mylos::small_models::normalize_relu", space, x.extent(0),
               Forward{groups, {statistics, parameters}, x, y});
}

void normalize_relu_backward(const ExecutionSpace& space, const NormGroups& groups, const NormStatistics& statistics,
                             const NormParameters& parameters, const ConstMatrix<float>& x, const ConstMatrix<float>& y,
                             const ConstMatrix<float>& dy, const Matrix<float>& dx, const Vector<float>& dgamma,
                             const Vector<float>& dbeta, const NormStatistics& sums) {
  const Normalizer normalizer{statistics, parameters};
  for_each_row("mylos::small_models::norm_gradient_sums", space, sums.mean.size(),
               GradientSums{groups, normalizer, x, y, dy, sums});
  for_each_row("mylos::small_models::norm_input_gradient", space, x.extent(0),
               InputGradient{groups, normalizer, x, y, dy, sums, dx});
  for_each_element(
      "mylos::small_models::norm_parameter_gradient", space, dgamma.size(), KOKKOS_LAMBDA(std::size_t c) {
        for (std::size_t group = 0; group < sums.mean.extent(0); ++group) {
          dbeta(c) += sums.mean(group, c);
          dgamma(c) += sums.variance(group, c);
        }
      });
}

NormStatistics take_statistics(Arena& arena, std::size_t groups, std::size_t channels) {
  return {arena.matrix<float>(groups, channels), arena.matrix<float>(groups, channels)};
}

}  // namespace mylos::small_models
