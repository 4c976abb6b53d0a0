#include "nn/heads/span_head.hpp"

#include "core/kernels/cross_entropy.hpp"
#include "nn/heads/linear_head.hpp"

namespace mylos::nn {
namespace {

template <class T>
class SpanHead final : public LinearHead<T> {
 public:
  using LinearHead<T>::LinearHead;

 private:
  void loss(const Pass& pass, const Batch& batch, float scale, const LinearHeadArrays<T>& arrays,
            const Vector<float>& losses) const override {
    span_cross_entropy<T>(pass.space, batch.sample_starts(), arrays.logits, batch.integers(names::start_labels),
                          batch.integers(names::end_labels), scale, losses, arrays.dlogits, pass.loss_scale, pass.hits);
  }
};

}  // namespace

template <class T>
std::unique_ptr<Head<T>> make_span_head(const std::string& name, float initializer_range) {
  return std::make_unique<SpanHead<T>>(LinearHeadSettings{
      .name = name, .columns = 2, .weight = {Initializer::Kind::normal, initializer_range}, .bias = {}});
}

template std::unique_ptr<Head<float>> make_span_head<float>(const std::string&, float);
template std::unique_ptr<Head<bfloat16>> make_span_head<bfloat16>(const std::string&, float);
template std::unique_ptr<Head<half>> make_span_head<half>(const std::string&, float);

}  // namespace mylos::nn
