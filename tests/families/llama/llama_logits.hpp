#pragma once

#include "core/element_type.hpp"
#include "families/llama/llama_body.hpp"
#include "nn/network.hpp"

#include <memory>
#include <stdexcept>

namespace mylos::tests {

/// A head that returns the logits (T, V) of all rows, from the tensor of a Llama's head.
template <class T>
class LogitsHead final : public nn::Head<T> {
 public:
  using typename nn::Head<T>::Purpose;
  explicit LogitsHead(const families::LlamaShape& shape) : shape_(shape) {}

  void add_tensors(ParameterTable::Builder& builder, std::size_t width) const override {
    if (shape_.tied) {
      builder.borrow("embeddings");
    } else {
      builder.tensor("lm_head.weight", {shape_.vocabulary, width}, {});
    }
  }
  void find_tensors(const ParameterTable& table) override {
    weight_ = table.find(shape_.tied ? families::llama_embeddings : "lm_head.weight");
  }
  void plan(Arena& arena, const BatchShape&, const nn::HeadInput<T>& input, Purpose) const override {
    take(arena, input);
  }
  void train(const nn::Pass&, const Batch&, float, const nn::HeadInput<T>&, const Vector<float>&) const override {
    throw std::logic_error("logits: no loss");
  }
  Matrix<float> predict(const nn::Pass& pass, const Batch&, const nn::HeadInput<T>& input,
                        const Vector<float>&) const override {
    const Matrix<float> logits = take(pass.arena, input);
    pass.gemm.operator()<T, float>(pass.space, Transpose::no, input.x, Transpose::yes,
                                   pass.parameters.matrix<T>(weight_), 0.0f, logits);
    return logits;
  }
  std::vector<GemmProduct> products(const BatchShape&, Purpose) const override { return {}; }
  double training_flops(const BatchShape&) const override { return 0.0; }

 private:
  Matrix<float> take(Arena& arena, const nn::HeadInput<T>& input) const {
    return arena.matrix<float>(input.x.extent(0), shape_.vocabulary);
  }

  families::LlamaShape shape_;
  std::size_t weight_ = 0;
};

/// Returns a Llama with the tensors of make_llama whose `predict` returns all logits. It needs no more memory than that
/// of make_llama if all rows are one chunk.
inline std::unique_ptr<nn::Model> make_llama_logits(const families::LlamaShape& shape, Precision precision) {
  return with_type(precision, [&]<class T>(T) {
    return nn::make_network<T>(families::make_llama_body<T>(shape), std::make_unique<LogitsHead<T>>(shape));
  });
}

}  // namespace mylos::tests
