#include "nn/heads/linear_head.hpp"

#include "core/kernels/activation.hpp"
#include "core/kernels/layer_norm.hpp"

namespace mylos::nn {

template <class T>
void LinearHead<T>::add_tensors(ParameterTable::Builder& builder, std::size_t width) const {
  add_linear_tensors(builder, settings_.name, width, settings_.columns, settings_.weight, settings_.bias);
}

template <class T>
void LinearHead<T>::find_tensors(const ParameterTable& table) {
  linear_ = find_linear(table, settings_.name);
  width_ = table.tensor(linear_.weight).shape.back();
}

template <class T>
LinearHeadArrays<T> LinearHead<T>::take(Arena& arena, const HeadInput<T>& input, Purpose purpose) const {
  const std::size_t rows = input.x.extent(0), columns = settings_.columns;
  const std::size_t row_losses = settings_.has_row_losses ? rows : 0;
  LinearHeadArrays<T> taken;
  taken.bias = arena.vector<float>(columns);
  taken.logits = arena.matrix<float>(rows, columns);
  taken.row_losses = arena.vector<float>(row_losses);
  if (purpose == Purpose::inference) return taken;
  taken.dlogits = arena.matrix<T>(rows, columns);
  taken.row_hits = arena.vector<float>(row_losses);
  const std::size_t sums = column_sum_workspace(rows, columns);
  taken.column_sums = input.column_sums.extent(0) >= sums ? input.column_sums : arena.vector<float>(sums);
  return taken;
}

template <class T>
LinearHeadArrays<T> LinearHead<T>::forward(const Pass& pass, const HeadInput<T>& input, Purpose purpose) const {
  const LinearHeadArrays<T> arrays = take(pass.arena, input, purpose);
  convert<T, float>(pass.space, pass.parameters.values<T>(linear_.bias), arrays.bias);
  const Epilogue<float> add_bias{EpilogueKind::bias, arrays.bias, {}};
  pass.gemm.operator()<T, float>(pass.space, Transpose::no, input.x, Transpose::yes,
                                 pass.parameters.matrix<T>(linear_.weight), 0.0f, arrays.logits, add_bias);
  return arrays;
}

template <class T>
void LinearHead<T>::train(const Pass& pass, const Batch& batch, float scale, const HeadInput<T>& input,
                          const Vector<float>& losses) const {
  const LinearHeadArrays<T> arrays = forward(pass, input, Purpose::training);
  loss(pass, batch, scale, arrays, losses);
  linear_gradients<T>(pass, linear_, input.x, arrays.dlogits, arrays.column_sums);
  if (input.dx.extent(0) > 0) linear_input_gradient<T>(pass, linear_, arrays.dlogits, 0.0f, input.dx);
}

template <class T>
Matrix<float> LinearHead<T>::predict(const Pass& pass, const Batch& batch, const HeadInput<T>& input,
                                     const Vector<float>& losses) const {
  const LinearHeadArrays<T> arrays = forward(pass, input, Purpose::inference);
  if (losses.extent(0) > 0) loss(pass, batch, 0.0f, arrays, losses);
  return arrays.logits;
}

template <class T>
std::vector<GemmProduct> LinearHead<T>::products(std::size_t rows, Purpose purpose) const {
  return linear_products({.name = "head",
                          .in = width_,
                          .out = settings_.columns,
                          .precision = precision_of<T>,
                          .forward = EpilogueKind::bias,
                          .has_float_result = true},
                         rows, purpose);
}

template <class T>
double LinearHead<T>::training_flops(std::size_t rows) const {
  return 6.0 * static_cast<double>(rows) * static_cast<double>(settings_.columns * width_);
}

template class LinearHead<float>;
template class LinearHead<bfloat16>;
template class LinearHead<half>;

}  // namespace mylos::nn
