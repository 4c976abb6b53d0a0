#pragma once

#include "nn/head.hpp"
#include "nn/layers/linear.hpp"

/// Heads of one linear layer with a bias: the logits of each row are float, and a loss gives their gradient.
namespace mylos::nn {

struct LinearHeadSettings {
  std::string name;         ///< of the layer; its tensors are `name`.weight (C, H) and `name`.bias (C)
  std::size_t columns = 0;  ///< C
  Initializer weight, bias;
  bool has_row_losses = false;  ///< true if the loss of a sample is a sum over its rows
};

/// The arrays of a pass over T rows. Those of the second line are empty in prediction.
template <class T>
struct LinearHeadArrays {
  Vector<float> bias;        ///< (C)
  Matrix<float> logits;      ///< (T, C)
  Vector<float> row_losses;  ///< (T) if the settings have row losses
  Matrix<T> dlogits;         ///< (T, C), empty in prediction
  Vector<float> row_hits;    ///< (T) like row_losses, empty in prediction
  Vector<float> column_sums;
};

template <class T>
class LinearHead : public Head<T> {
 public:
  using Purpose = ParameterStore::Purpose;
  explicit LinearHead(LinearHeadSettings settings) : settings_(std::move(settings)) {}

  void add_tensors(ParameterTable::Builder& builder, std::size_t width) const override;
  void find_tensors(const ParameterTable& table) override;
  void plan(Arena& arena, const HeadInput<T>& input, Purpose purpose) const override { take(arena, input, purpose); }
  void train(const Pass& pass, const Batch& batch, float scale, const HeadInput<T>& input,
             const Vector<float>& losses) const override;
  Matrix<float> predict(const Pass& pass, const Batch& batch, const HeadInput<T>& input,
                        const Vector<float>& losses) const override;
  std::vector<GemmProduct> products(std::size_t rows, Purpose purpose) const override;
  double training_flops(std::size_t rows) const override;

 protected:
  /// Computes losses (S) from the logits, and dlogits = scale * pass.loss_scale * gradient of their sum unless it is
  /// empty.
  virtual void loss(const Pass& pass, const Batch& batch, float scale, const LinearHeadArrays<T>& arrays,
                    const Vector<float>& losses) const = 0;

 private:
  LinearHeadArrays<T> take(Arena& arena, const HeadInput<T>& input, Purpose purpose) const;
  LinearHeadArrays<T> forward(const Pass& pass, const HeadInput<T>& input, Purpose purpose) const;

  LinearHeadSettings settings_;
  std::size_t width_ = 0;
  Linear linear_;
};

}  // namespace mylos::nn
