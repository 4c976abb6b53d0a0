#include "bench/kernel_arrays.hpp"
#include "bench/kernel_cases.hpp"
#include "core/kernels/activation.hpp"
#include "core/kernels/norms/layer_norm.hpp"

namespace mylos::bench {
namespace {

double gelu_of(double x) { return 0.5 * x * (1.0 + std::erf(x / std::sqrt(2.0))); }
double gelu_gradient_of(double x) {
  constexpr double pi = 3.14159265358979323846;
  return 0.5 * (1.0 + std::erf(x / std::sqrt(2.0))) + x * std::exp(-0.5 * x * x) / std::sqrt(2.0 * pi);
}

/// Arrays have the width of a feed-forward layer, four times that of the model; so do those below.
template <class T>
class Gelu final : public KernelCase {
 public:
  Gelu(std::size_t bytes, std::size_t columns)
      : pre_(filled_matrix<T>(1, at_least_one(bytes / (8 * columns * sizeof(T))), 4 * columns)),
        y_(empty_matrix<T>(pre_.rows, pre_.columns)) {}

  double bytes() const override { return static_cast<double>(2 * pre_.memory.size() * sizeof(T)); }
  void launch(const ExecutionSpace& space) const override { gelu<T>(space, pre_, y_); }
  void check() const override {
    check_rows("GELU", y_, [&](std::size_t row, std::size_t i) { return gelu_of(value(1, row * y_.columns + i)); });
  }

 private:
  OwnMatrix<T> pre_, y_;
};

/// GELU's gradient, the bias' gradient and GELU again.
template <class T>
class GeluBackward final : public KernelCase {
 public:
  GeluBackward(std::size_t bytes, std::size_t columns)
      : pre_(filled_matrix<T>(1, at_least_one(bytes / (16 * columns * sizeof(T))), 4 * columns)),
        dy_(filled_matrix<T>(2, pre_.rows, pre_.columns)),
        sums_("mylos::bench::sums", pre_.columns),
        workspace_("mylos::bench::workspace", column_sum_workspace(pre_.rows, pre_.columns)) {}

  double bytes() const override { return static_cast<double>(4 * pre_.memory.size() * sizeof(T)); }
  void launch(const ExecutionSpace& space) const override { gelu_backward<T>(space, pre_, dy_, sums_, workspace_); }
  void check() const override {
    check_rows("GELU's gradient", dy_, [&](std::size_t row, std::size_t i) {
      const std::size_t at = row * dy_.columns + i;
      return value(2, at) * gelu_gradient_of(value(1, at));
    });
    check_rows("GELU again", pre_,
               [&](std::size_t row, std::size_t i) { return gelu_of(value(1, row * pre_.columns + i)); });
  }

 private:
  OwnMatrix<T> pre_, dy_;
  Vector<float> sums_, workspace_;
};

template <class T>
class BiasGradient final : public KernelCase {
 public:
  BiasGradient(std::size_t bytes, std::size_t columns)
      : x_(filled_matrix<T>(1, at_least_one(bytes / (4 * columns * sizeof(T))), 4 * columns)),
        sums_("mylos::bench::sums", x_.columns),
        workspace_("mylos::bench::workspace", column_sum_workspace(x_.rows, x_.columns)) {}

  double bytes() const override { return static_cast<double>(x_.memory.size() * sizeof(T)); }
  void launch(const ExecutionSpace& space) const override { add_column_sums<T>(space, x_, sums_, workspace_); }
  void check() const override {
    const std::vector<float> sums = row_of(OwnMatrix<float>{sums_, 1, x_.columns}, 0);
    for (const std::size_t i : positions_in(x_.columns)) {
      double sum = 0.0;
      for (std::size_t row = 0; row < x_.rows; ++row) sum += value(1, row * x_.columns + i);
      check_sum("a bias' gradient", 0, i, sums[i], sum, exact_sum_bound);
    }
  }

 private:
  OwnMatrix<T> x_;
  Vector<float> sums_, workspace_;
};

}  // namespace

std::vector<KernelKind> activation_kinds() {
  return {{"gelu", make_case<Gelu>},
          {"gelu-backward", make_case<GeluBackward>},
          {"bias-gradient", make_case<BiasGradient>}};
}

}  // namespace mylos::bench
