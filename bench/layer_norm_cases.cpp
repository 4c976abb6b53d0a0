#include "bench/kernel_arrays.hpp"
#include "bench/kernel_cases.hpp"
#include "core/kernels/norms/layer_norm.hpp"

#include <map>

namespace mylos::bench {
namespace {

/// Arrays of z = residual + dropout(x + bias), y = LayerNorm(z), and the backward pass. x is not overwritten, although
/// a BERT layer stores z in its place, so that every launch computes the same; the number of bytes is equal.
template <class T>
class NormArrays {
 public:
  NormArrays(std::size_t rows, std::size_t columns)
      : packing(rows),
        x(filled_matrix<T>(1, rows, columns)),
        z(empty_matrix<T>(rows, columns)),
        residual(filled_matrix<T>(2, rows, columns)),
        y(empty_matrix<T>(rows, columns)),
        bias(filled<T>(3, columns)),
        weight(filled<T>(4, columns)),
        shift(filled<T>(5, columns)),
        saved{z, uninitialized<float>("mylos::bench::mean", rows), uninitialized<float>("mylos::bench::inverse", rows)},
        parameters{weight, shift, epsilon} {}

  void forward(const ExecutionSpace& space) const {
    bias_dropout_residual_layer_norm<T>(space, dropout, packing.device(), x, bias, residual, parameters, saved, y);
  }

  /// z of a row on the host, with its mean and 1 / sqrt(variance + epsilon).
  struct Row {
    std::vector<double> z;
    double mean = 0.0, inverse = 0.0;
    double normalised(std::size_t column) const { return (z[column] - mean) * inverse; }
  };
  Row row(std::size_t index) const {
    const std::size_t columns = z.columns;
    Row row{std::vector<double>(columns)};
    double squares = 0.0;
    for (std::size_t i = 0; i < columns; ++i) {
      const std::size_t at = index * columns + i;
      row.z[i] = value(2, at) + (value(1, at) + value(3, i)) * PackedRows::factor(dropout, index, i);
      row.mean += row.z[i] / static_cast<double>(columns);
      squares += row.z[i] * row.z[i] / static_cast<double>(columns);
    }
    row.inverse = 1.0 / std::sqrt(squares - row.mean * row.mean + epsilon);
    return row;
  }

  static constexpr float epsilon = 1e-5f;
  DropoutKey dropout{.seed = 1, .step = 2, .site = 3, .probability = 0.1f};
  PackedRows packing;
  OwnMatrix<T> x, z, residual, y;
  Vector<T> bias, weight, shift;
  LayerNormSaved<T> saved;
  LayerNormParameters<T> parameters;
};

template <class T>
class NormForward final : public KernelCase {
 public:
  NormForward(std::size_t bytes, std::size_t columns)
      : arrays_(at_least_one(bytes / (4 * columns * sizeof(T))), columns) {}

  double bytes() const override {
    return static_cast<double>(arrays_.z.rows * (4 * arrays_.z.columns * sizeof(T) + 2 * sizeof(float)));
  }
  void launch(const ExecutionSpace& space) const override { arrays_.forward(space); }
  void check() const override {
    std::map<std::size_t, typename NormArrays<T>::Row> rows;
    for (const std::size_t row : positions_in(arrays_.z.rows)) rows[row] = arrays_.row(row);
    check_rows("LayerNorm's input", arrays_.z, [&](std::size_t row, std::size_t i) { return rows[row].z[i]; });
    check_rows("LayerNorm", arrays_.y,
               [&](std::size_t row, std::size_t i) { return rows[row].normalised(i) * value(4, i) + value(5, i); });
  }

 private:
  NormArrays<T> arrays_;
};

/// Returns mean(g) and mean(g x^) of each row, where g = dy * weight, dy is array 6, and x^ is z normalized.
template <class T>
OwnMatrix<float> means_along(const ConstMatrix<T>& z, const ConstVector<T>& weight, const LayerNormSaved<T>& saved) {
  const OwnMatrix<float> means = empty_matrix<float>(z.extent(0), 2);
  const Matrix<float> result = means;
  const Vector<float> mean = saved.mean, inverse = saved.inverse;
  for_each_element(
      "mylos::bench::means", ExecutionSpace(), z.extent(0), KOKKOS_LAMBDA(std::size_t row) {
        const std::size_t columns = z.extent(1);
        double sum_g = 0.0, sum_gx = 0.0;
        for (std::size_t i = 0; i < columns; ++i) {
          const double g = static_cast<double>(value(6, row * columns + i)) * float(weight(i));
          sum_g += g;
          sum_gx += g * (float(z(row, i)) - mean(row)) * inverse(row);
        }
        result(row, 0) = static_cast<float>(sum_g / static_cast<double>(columns));
        result(row, 1) = static_cast<float>(sum_gx / static_cast<double>(columns));
      });
  return means;
}

template <class T>
class NormBackward final : public KernelCase {
 public:
  NormBackward(std::size_t bytes, std::size_t columns)
      : arrays_(at_least_one(bytes / (4 * columns * sizeof(T))), columns),
        dy_(filled_matrix<T>(6, arrays_.z.rows, columns)),
        dresidual_(empty_matrix<T>(arrays_.z.rows, columns)),
        dx_(empty_matrix<T>(arrays_.z.rows, columns)),
        workspace_("mylos::bench::workspace", column_sum_workspace(arrays_.z.rows, columns)) {
    for (Vector<float>& sums : sums_) sums = Vector<float>("mylos::bench::sums", columns);
    arrays_.forward(ExecutionSpace());
  }

  double bytes() const override {
    return static_cast<double>(dy_.rows * (4 * dy_.columns * sizeof(T) + 2 * sizeof(float)));
  }
  void launch(const ExecutionSpace& space) const override {
    bias_dropout_residual_layer_norm_backward<T>(space, arrays_.dropout, arrays_.packing.device(), dy_,
                                                 arrays_.parameters, arrays_.saved, dresidual_, dx_, sums_[0], sums_[1],
                                                 sums_[2], workspace_);
  }
  void check() const override {
    std::map<std::size_t, std::vector<double>> rows;
    for (const std::size_t row : positions_in(dy_.rows)) rows[row] = dz(row);
    check_rows("LayerNorm's gradient", dresidual_, [&](std::size_t row, std::size_t i) { return rows[row][i]; });
    check_rows("LayerNorm's gradient through dropout", dx_, [&](std::size_t row, std::size_t i) {
      return rows[row][i] * PackedRows::factor(arrays_.dropout, row, i);
    });
    check_sums();
  }

 private:
  std::vector<double> dz(std::size_t index) const {
    const auto row = arrays_.row(index);
    const std::size_t columns = dy_.columns;
    const auto scaled = [&](std::size_t i) { return value(6, index * columns + i) * static_cast<double>(value(4, i)); };
    double mean = 0.0, along = 0.0;
    for (std::size_t i = 0; i < columns; ++i) {
      mean += scaled(i) / static_cast<double>(columns);
      along += scaled(i) * row.normalised(i) / static_cast<double>(columns);
    }
    std::vector<double> result(columns);
    for (std::size_t i = 0; i < columns; ++i) result[i] = row.inverse * (scaled(i) - mean - row.normalised(i) * along);
    return result;
  }
  /// Checks the gradients of weight, shift and bias against sums over rows of the forward pass's results.
  void check_sums() const {
    const OwnMatrix<float> mean{arrays_.saved.mean, dy_.rows, 1}, inverse{arrays_.saved.inverse, dy_.rows, 1};
    const std::vector<float> means = column_of(mean, 0), inverses = column_of(inverse, 0);
    const OwnMatrix<float> along = means_along<T>(arrays_.z, arrays_.weight, arrays_.saved);
    const std::vector<float> means_g = column_of(along, 0), means_gx = column_of(along, 1);
    for (const std::size_t i : positions_in(dy_.columns)) {
      const std::vector<float> z = column_of(arrays_.z, i);
      double weight = 0.0, shift = 0.0, bias = 0.0;
      for (std::size_t row = 0; row < dy_.rows; ++row) {
        const double dy = value(6, row * dy_.columns + i), normal = (z[row] - means[row]) * inverses[row];
        weight += dy * normal;
        shift += dy;
        const double dz = inverses[row] * (dy * value(4, i) - means_g[row] - normal * means_gx[row]);
        bias += dz * PackedRows::factor(arrays_.dropout, row, i);
      }
      check_sum("the gradient of LayerNorm's weight", 0, i, element(sums_[0], i), weight, float_sum_bound);
      check_sum("the gradient of LayerNorm's bias", 0, i, element(sums_[1], i), shift, exact_sum_bound);
      check_sum("the gradient of the bias", 0, i, element(sums_[2], i), bias, float_sum_bound);
    }
  }
  NormArrays<T> arrays_;
  OwnMatrix<T> dy_, dresidual_, dx_;
  Vector<float> sums_[3], workspace_;
};

}  // namespace

std::vector<KernelKind> layer_norm_kinds() {
  return {{"layer-norm", make_case<NormForward>}, {"layer-norm-gradient", make_case<NormBackward>}};
}

}  // namespace mylos::bench
