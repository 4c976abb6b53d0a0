#include "bench/kernel_arrays.hpp"
#include "bench/kernel_cases.hpp"
#include "core/kernels/norms/batch_norm.hpp"

#include <algorithm>

namespace mylos::bench {
namespace {

/// Arrays of y = relu(BN(x)) over one group of images of 14 x 14 pixels, and of its backward pass.
template <class T>
class BatchNormArrays {
 public:
  static constexpr std::size_t pixels = 14 * 14;
  static constexpr float epsilon = 1e-5f;

  BatchNormArrays(std::size_t images, std::size_t channels)
      : groups{uploaded(std::vector<std::size_t>{0, images}), uploaded(std::vector<std::uint32_t>(images, 0)), pixels},
        x(filled_matrix<T>(1, images * pixels, channels)),
        mean(empty_matrix<float>(1, channels)),
        inverse(empty_matrix<float>(1, channels)),
        input{x, {mean, inverse}, filled<T>(2, channels), filled<T>(3, channels)},
        workspace("mylos::bench::workspace", batch_norm_workspace(1, images, pixels, channels)) {}

  /// The values of a channel, computed in double.
  struct Channel {
    std::vector<float> x;
    double mean = 0.0, inverse = 0.0, weight, bias;

    double normal(std::size_t row) const { return (x[row] - mean) * inverse; }
    double y(std::size_t row) const { return normal(row) * weight + bias; }
  };
  Channel channel(std::size_t c) const {
    Channel channel{.x = column_of(x, c), .weight = value(2, c), .bias = value(3, c)};
    const auto count = static_cast<double>(x.rows);
    double squares = 0.0;
    for (const float one : channel.x) channel.mean += one / count;
    for (const float one : channel.x) squares += std::pow(one - channel.mean, 2) / count;
    channel.inverse = 1.0 / std::sqrt(squares + epsilon);
    return channel;
  }

  ImageGroups groups;
  OwnMatrix<T> x;
  OwnMatrix<float> mean, inverse;
  BatchNormInput<T> input;
  Vector<float> workspace;
};

template <class T>
std::size_t images_of(std::size_t bytes, std::size_t arrays, std::size_t channels) {
  return at_least_one(bytes / (arrays * BatchNormArrays<T>::pixels * channels * sizeof(T)));
}

/// The statistics read x, and the result reads it again: three arrays of traffic.
template <class T>
class BatchNormForward final : public KernelCase {
 public:
  BatchNormForward(std::size_t bytes, std::size_t channels)
      : arrays_(images_of<T>(bytes, 3, channels), channels), y_(empty_matrix<T>(arrays_.x.rows, channels)) {}

  double bytes() const override { return static_cast<double>(3 * y_.rows * y_.columns * sizeof(T)); }
  void launch(const ExecutionSpace& space) const override {
    batch_norm_statistics<T>(space, arrays_.groups, arrays_.x, arrays_.epsilon, arrays_.input.statistics, {},
                             arrays_.workspace);
    batch_norm_relu<T>(space, arrays_.groups, arrays_.input, y_);
  }
  void check() const override {
    for (const std::size_t c : positions_in(y_.columns)) {
      const auto channel = arrays_.channel(c);
      const std::vector<float> y = column_of(y_, c);
      for (std::size_t row = 0; row < y.size(); ++row) {
        check_value("BatchNorm", row, c, y[row], std::max(channel.y(row), 0.0), tolerance<T>());
      }
    }
  }

 private:
  BatchNormArrays<T> arrays_;
  OwnMatrix<T> y_;
};

/// The sums read x and dy, and the gradient reads them again: five arrays of traffic.
template <class T>
class BatchNormBackward final : public KernelCase {
 public:
  BatchNormBackward(std::size_t bytes, std::size_t channels)
      : arrays_(images_of<T>(bytes, 5, channels), channels),
        dy_(filled_matrix<T>(4, arrays_.x.rows, channels)),
        dx_(empty_matrix<T>(arrays_.x.rows, channels)),
        gradients_{Vector<float>("mylos::bench::dweight", channels), Vector<float>("mylos::bench::dbias", channels)} {
    batch_norm_statistics<T>({}, arrays_.groups, arrays_.x, arrays_.epsilon, arrays_.input.statistics, {},
                             arrays_.workspace);
  }

  double bytes() const override { return static_cast<double>(5 * dx_.rows * dx_.columns * sizeof(T)); }
  void launch(const ExecutionSpace& space) const override {
    batch_norm_relu_backward<T>(space, arrays_.groups, arrays_.input, dy_, {}, dx_, gradients_, arrays_.workspace);
  }
  void check() const override {
    for (const std::size_t c : positions_in(dx_.columns)) {
      const auto channel = arrays_.channel(c);
      const std::vector<float> dx = column_of(dx_, c);
      const auto dy = [&](std::size_t row) { return static_cast<double>(value(4, row * dx_.columns + c)); };
      const auto gradient = [&](std::size_t row) { return channel.y(row) > 0.0 ? dy(row) : 0.0; };
      // Where y is almost zero, the ReLU may pass the gradient or not.
      const auto is_ambiguous = [&](std::size_t row) { return std::abs(channel.y(row)) < 1e-4; };
      double sum = 0.0, products = 0.0, ambiguous = 0.0;
      for (std::size_t row = 0; row < dx.size(); ++row) {
        sum += gradient(row);
        products += gradient(row) * channel.normal(row);
        if (is_ambiguous(row)) ambiguous += std::abs(dy(row));
      }
      check_sum("the gradient of BatchNorm's bias", 0, c, element(gradients_.dbias, c), sum,
                exact_sum_bound + ambiguous);
      check_sum("the gradient of BatchNorm's weight", 0, c, element(gradients_.dweight, c), products,
                float_sum_bound + 4.0 * ambiguous);
      // Rounding cancels in the means of the differences; a missing term of dx does not.
      const auto count = static_cast<double>(dx.size());
      double mean = 0.0, along = 0.0;
      for (std::size_t row = 0; row < dx.size(); ++row) {
        if (is_ambiguous(row)) continue;
        const double normal = channel.normal(row), scale = channel.weight * channel.inverse;
        const double expected = scale * (gradient(row) - sum / count - normal * products / count);
        check_value("BatchNorm's gradient", row, c, dx[row], expected, tolerance<T>());
        mean += (dx[row] - expected) / count;
        along += (dx[row] - expected) * normal / count;
      }
      check_value("the mean of BatchNorm's gradient", 0, c, mean, 0.0, tolerance<T>() / 32);
      check_value("BatchNorm's gradient along x", 0, c, along, 0.0, tolerance<T>() / 32);
    }
  }

 private:
  BatchNormArrays<T> arrays_;
  OwnMatrix<T> dy_, dx_;
  BatchNormGradients gradients_;
};

}  // namespace

std::vector<KernelKind> batch_norm_kinds() {
  return {{"batch-norm", make_case<BatchNormForward>}, {"batch-norm-gradient", make_case<BatchNormBackward>}};
}

}  // namespace mylos::bench
