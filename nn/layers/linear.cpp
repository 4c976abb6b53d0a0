#include "nn/layers/linear.hpp"

#include "core/kernels/activation.hpp"

namespace mylos::nn {

void add_linear_tensors(ParameterTable::Builder& builder, const std::string& name, std::size_t in, std::size_t out,
                        Initializer weight, std::optional<Initializer> bias) {
  builder.linear_weight(name + ".weight", {out, in}, weight);
  if (bias) builder.tensor(name + ".bias", {out}, *bias, {.decay = false});
}

Linear find_linear(const ParameterTable& table, const std::string& name, std::size_t stacked, bool has_bias) {
  const std::size_t weight = table.find(name + ".weight");
  return {weight, has_bias ? table.find(name + ".bias") : 0, stacked, has_bias, find_adapters(table, weight, stacked)};
}

std::vector<GemmProduct> linear_products(const LinearProducts& linear, std::size_t rows,
                                         ParameterStore::Purpose purpose) {
  const Precision precision = linear.precision;
  std::vector<GemmProduct> products{{.transpose_b = Transpose::yes,
                                     .m = rows,
                                     .n = linear.out,
                                     .k = linear.in,
                                     .input = precision,
                                     .output = linear.has_float_result ? Precision::float32 : precision,
                                     .epilogue = linear.forward,
                                     .count = linear.count,
                                     .name = linear.name + "/forward"}};
  if (purpose == ParameterStore::Purpose::inference) return products;
  products.push_back({.transpose_a = Transpose::yes,
                      .m = linear.out,
                      .n = linear.in,
                      .k = rows,
                      .input = precision,
                      .count = linear.count,
                      .name = linear.name + "/weight-gradient"});
  products.push_back({.m = rows,
                      .n = linear.in,
                      .k = linear.out,
                      .input = precision,
                      .output = precision,
                      .accumulate = linear.adds_input_gradient,
                      .count = linear.count,
                      .name = linear.name + "/input-gradient"});
  return products;
}

namespace {

template <class T>
void multiply(const Pass& pass, const Linear& linear, const ConstMatrix<T>& x, const Matrix<T>& y,
              const Epilogue<T>& epilogue) {
  const bool adapted = linear.adapters.rank > 0, begins_with_adapters = adapted && epilogue.kind == EpilogueKind::none;
  // The large product adds what is there in passing, which saves a pass over y and a rounding of it.
  if (begins_with_adapters) pass.adapters->forward<T>(pass, linear.adapters, x, 0.0f, y);
  pass.gemm.operator()<T, T>(pass.space, Transpose::no, x, Transpose::yes,
                             pass.parameters.stacked_matrix<T>(linear.weight, linear.stacked),
                             begins_with_adapters ? 1.0f : 0.0f, y, epilogue);
  if (adapted && !begins_with_adapters) pass.adapters->forward<T>(pass, linear.adapters, x, 1.0f, y);
}

}  // namespace

template <class T>
void linear_without_bias(const Pass& pass, const Linear& linear, const ConstMatrix<T>& x, const Matrix<T>& y) {
  multiply<T>(pass, linear, x, y, {});
}

template <class T>
void linear_forward(const Pass& pass, const Linear& linear, const ConstMatrix<T>& x, const Matrix<T>& y) {
  if (!linear.has_bias) return linear_without_bias<T>(pass, linear, x, y);
  const Epilogue<T> add_bias{EpilogueKind::bias, pass.parameters.stacked_values<T>(linear.bias, linear.stacked), {}};
  multiply<T>(pass, linear, x, y, add_bias);
}

template <class T>
void linear_gelu_forward(const Pass& pass, const Linear& linear, const ConstMatrix<T>& x, const Matrix<T>& pre,
                         const Matrix<T>& y) {
  if (linear.adapters.rank > 0) {  // what they add comes before the activation
    linear_forward<T>(pass, linear, x, pre);
    return gelu<T>(pass.space, pre, y);
  }
  multiply<T>(pass, linear, x, y, {EpilogueKind::bias_gelu, pass.parameters.values<T>(linear.bias), pre});
}

namespace {

template <class T>
void adapter_gradients(const Pass& pass, const Linear& linear, const ConstMatrix<T>& x, const ConstMatrix<T>& dy) {
  if (linear.adapters.rank > 0) pass.adapters->gradients<T>(pass, linear.adapters, x, dy);
}

}  // namespace

bool reads_input(const Pass& pass, const Linear& linear) {
  return linear.adapters.rank > 0 || pass.parameters.trains(linear.weight, linear.stacked);
}

template <class T>
void linear_weight_gradient(const Pass& pass, const Linear& linear, const ConstMatrix<T>& x, const ConstMatrix<T>& dy) {
  adapter_gradients<T>(pass, linear, x, dy);
  if (!pass.parameters.trains(linear.weight, linear.stacked)) return;
  const float beta = pass.parameters.begins_gradient(linear.weight, linear.stacked) ? 0.0f : 1.0f;
  pass.gemm.operator()<T, float>(pass.space, Transpose::yes, dy, Transpose::no, x, beta,
                                 pass.parameters.stacked_gradient_matrix(linear.weight, linear.stacked));
}

template <class T>
void linear_gradients(const Pass& pass, const Linear& linear, const ConstMatrix<T>& x, const ConstMatrix<T>& dy,
                      const Vector<float>& workspace) {
  const ParameterStore& parameters = pass.parameters;
  const bool trains_bias = linear.has_bias && parameters.trains(linear.bias, linear.stacked);
  if (!trains_bias) return linear_weight_gradient<T>(pass, linear, x, dy);
  adapter_gradients<T>(pass, linear, x, dy);
  const Vector<float> db = parameters.stacked_gradient(linear.bias, linear.stacked);
  if (!parameters.trains(linear.weight, linear.stacked)) return add_column_sums<T>(pass.space, dy, db, workspace);
  const float beta = parameters.begins_gradient(linear.weight, linear.stacked) ? 0.0f : 1.0f;
  pass.gemm.multiply_and_sum<T>(pass.space, dy, x, beta,
                                parameters.stacked_gradient_matrix(linear.weight, linear.stacked), db, workspace);
}

template <class T>
void linear_input_gradient(const Pass& pass, const Linear& linear, const ConstMatrix<T>& dy, float beta,
                           const Matrix<T>& dx) {
  const bool adapted = linear.adapters.rank > 0;
  if (adapted) pass.adapters->input_gradient<T>(pass, linear.adapters, dy, beta, dx);
  pass.gemm.operator()<T, T>(pass.space, Transpose::no, dy, Transpose::no,
                             pass.parameters.stacked_matrix<T>(linear.weight, linear.stacked), adapted ? 1.0f : beta,
                             dx);
}

#define MYLOS_INSTANTIATE(T)                                                                                         \
  template void linear_without_bias<T>(const Pass&, const Linear&, const ConstMatrix<T>&, const Matrix<T>&);         \
  template void linear_forward<T>(const Pass&, const Linear&, const ConstMatrix<T>&, const Matrix<T>&);              \
  template void linear_gelu_forward<T>(const Pass&, const Linear&, const ConstMatrix<T>&, const Matrix<T>&,          \
                                       const Matrix<T>&);                                                            \
  template void linear_weight_gradient<T>(const Pass&, const Linear&, const ConstMatrix<T>&, const ConstMatrix<T>&); \
  template void linear_gradients<T>(const Pass&, const Linear&, const ConstMatrix<T>&, const ConstMatrix<T>&,        \
                                    const Vector<float>&);                                                           \
  template void linear_input_gradient<T>(const Pass&, const Linear&, const ConstMatrix<T>&, float, const Matrix<T>&);
MYLOS_INSTANTIATE(float)
MYLOS_INSTANTIATE(bfloat16)
MYLOS_INSTANTIATE(half)
#undef MYLOS_INSTANTIATE

}  // namespace mylos::nn
