#include "nn/heads/class_head.hpp"

#include "core/kernels/cross_entropy.hpp"
#include "nn/heads/linear_head.hpp"
#include "nn/sample_losses.hpp"

namespace mylos::nn {
namespace {

template <class T>
class ClassHead final : public LinearHead<T> {
 public:
  ClassHead(LinearHeadSettings settings, float label_smoothing)
      : LinearHead<T>(std::move(settings)), label_smoothing_(label_smoothing) {}

 private:
  void loss(const Pass& pass, const Batch& batch, float scale, const LinearHeadArrays<T>& arrays,
            const Vector<float>& losses) const override {
    cross_entropy<T>(pass.space, arrays.logits, batch.integers(names::labels), scale, arrays.row_losses, arrays.dlogits,
                     label_smoothing_, pass.loss_scale, arrays.row_hits);
    sum_sample_losses(pass.space, batch.sample_starts(), arrays.row_losses, losses, arrays.row_hits, pass.hits);
  }

  float label_smoothing_;
};

}  // namespace

template <class T>
std::unique_ptr<Head<T>> make_class_head(const std::string& name, std::size_t classes, float initializer_range,
                                         float label_smoothing) {
  const Initializer uniform{Initializer::Kind::uniform, initializer_range};
  return std::make_unique<ClassHead<T>>(
      LinearHeadSettings{.name = name, .columns = classes, .weight = uniform, .bias = uniform, .has_row_losses = true},
      label_smoothing);
}

#define MYLOS_INSTANTIATE(T) \
  template std::unique_ptr<Head<T>> make_class_head<T>(const std::string&, std::size_t, float, float);
MYLOS_INSTANTIATE(float)
MYLOS_INSTANTIATE(bfloat16)
MYLOS_INSTANTIATE(half)
#undef MYLOS_INSTANTIATE

}  // namespace mylos::nn
