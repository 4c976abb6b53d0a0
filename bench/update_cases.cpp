#include "bench/kernel_arrays.hpp"
#include "bench/kernel_cases.hpp"
#include "core/kernels/updates/adamw.hpp"

namespace mylos::bench {
namespace {

/// The work of a step on a slice: the gradient's norm, AdamW with clipping, and the conversion of values to 16 bits.
template <class T>
class Update final : public KernelCase {
 public:
  Update(std::size_t bytes, std::size_t)
      : size_(at_least_one(bytes / (8 * sizeof(float)) / norm_block) * norm_block),
        gradient_(filled_matrix<float>(1, size_ / norm_block, norm_block)),
        master_(filled_matrix<float>(2, size_ / norm_block, norm_block)),
        first_("mylos::bench::first_moment", size_),
        second_("mylos::bench::second_moment", size_),
        values_(empty_matrix<T>(size_ / norm_block, norm_block)),
        sums_("mylos::bench::norm", size_ / norm_block),
        control_("mylos::bench::control", 1) {
    Kokkos::deep_copy(control_, UpdateControl{gradient_scale, 0});
  }

  /// The norm reads the gradient. The update reads gradient, master weights and moments, and writes all but the
  /// gradient.
  double bytes() const override {
    return static_cast<double>(size_ * (8 * sizeof(float) + (is_float ? 0 : sizeof(T))));
  }
  void launch(const ExecutionSpace& space) const override {
    block_squared_sums(space, gradient_.memory, 0, sums_);
    const RoundedValues rounded{is_float ? nullptr : values_.memory.data(), precision_of<T>};
    adamw_update(space, settings, control_, gradient_.memory, master_.memory, first_, second_, rounded);
  }
  void check() const override {
    const auto updated = [this](std::size_t row, std::size_t i) {
      const std::size_t at = row * norm_block + i;
      const double g = value(1, at) * gradient_scale, w = value(2, at);
      // In the first step, the bias-corrected moments are g and g^2.
      return w - settings.learning_rate * (g / (std::abs(g) + settings.epsilon) + settings.weight_decay * w);
    };
    check_rows("AdamW", master_, updated);
    if constexpr (!is_float) check_rows("the rounded values", values_, updated);
    const auto sums = Kokkos::create_mirror_view_and_copy(HostSpace(), sums_);
    for (const std::size_t block : positions_in(sums.size())) {
      double sum = 0.0;
      for (std::size_t i = 0; i < norm_block; ++i) {
        const double g = value(1, block * norm_block + i);
        sum += g * g;
      }
      check_value("a block's sum of squares", block, 0, sums(block), sum, tolerance<float>());
    }
  }

 private:
  static constexpr bool is_float = precision_of<T> == Precision::float32;
  static constexpr AdamWSettings settings = {
      .learning_rate = 1e-2f, .weight_decay = 0.01f, .bias_correction1 = 0.1, .bias_correction2 = 0.001};
  static constexpr double gradient_scale = 0.5;
  std::size_t size_;
  OwnMatrix<float> gradient_, master_;
  Vector<float> first_, second_;
  OwnMatrix<T> values_;
  Vector<double> sums_;
  Vector<UpdateControl> control_;
};

}  // namespace

std::vector<KernelKind> update_kinds() { return {{"update", make_case<Update>}}; }

}  // namespace mylos::bench
