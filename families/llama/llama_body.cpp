#include "families/llama/llama_body.hpp"

#include "families/llama/llama_pass.hpp"

#include <algorithm>

namespace mylos::families {
namespace {

template <class T>
class LlamaBody final : public nn::Body<T> {
 public:
  using typename nn::Body<T>::Purpose;

  explicit LlamaBody(const LlamaShape& shape) : units_{shape} { check_shape(shape); }

  std::size_t width() const override { return shape().hidden; }
  void add_units(ParameterTable::Builder& builder) const override {
    const Initializer normal{Initializer::Kind::normal, shape().initializer_range};
    builder.unit("embeddings").tensor(llama_embeddings, {shape().vocabulary, shape().hidden}, normal);
    for (std::size_t layer = 0; layer < shape().layers; ++layer) LlamaLayer<T>::add_rows(builder, shape(), layer);
  }
  void add_final_tensors(ParameterTable::Builder& builder) const override {
    add_rms_norm_row(builder, "model.norm", shape().hidden);
  }
  void find_tensors(const ParameterTable& table) override { units_.find_tensors(table); }

  std::unique_ptr<nn::BodyPass<T>> begin(Arena& arena, const BatchShape& batch, Purpose purpose,
                                         nn::Recompute recompute) const override {
    auto pass = std::make_unique<LlamaPass<T>>(units_);
    if (purpose == Purpose::training) {
      pass->take_training(arena, batch, recompute);
    } else {
      pass->take_prediction(arena, batch.rows);
    }
    return pass;
  }

  std::vector<GemmProduct> products(const BatchShape& batch, Purpose purpose) const override {
    return LlamaLayer<T>::products(shape(), batch.rows, purpose);
  }
  nn::UnitFlops training_flops(std::size_t unit, const BatchShape& batch, nn::Recompute recompute) const override {
    if (unit == 0) return {};  // lookups need no products
    return LlamaLayer<T>::training_flops(shape(), batch, recompute);
  }
  std::size_t scratch_bytes(const BatchShape& batch, Purpose purpose, const TeamProcessor& processor) const override {
    const AttentionShape attention = attention_shape(shape());
    const std::size_t forward = attention_forward_scratch<T>(attention, batch.samples, batch.longest, processor);
    if (purpose == Purpose::inference) return forward;
    return std::max(forward, attention_backward_scratch<T>(attention, batch.samples, batch.longest, processor));
  }
  void prepare(const ExecutionSpace& space, const BatchShapes& batches, Purpose purpose) const override {
    prepare_attention<T>(space, attention_shape(shape()), batches, purpose == Purpose::training);
  }

 private:
  const LlamaShape& shape() const { return units_.shape; }

  LlamaUnits<T> units_;
};

}  // namespace

template <class T>
std::unique_ptr<nn::Body<T>> make_llama_body(const LlamaShape& shape) {
  return std::make_unique<LlamaBody<T>>(shape);
}

template std::unique_ptr<nn::Body<float>> make_llama_body<float>(const LlamaShape&);
template std::unique_ptr<nn::Body<bfloat16>> make_llama_body<bfloat16>(const LlamaShape&);
template std::unique_ptr<nn::Body<half>> make_llama_body<half>(const LlamaShape&);

}  // namespace mylos::families
