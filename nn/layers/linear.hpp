#pragma once

#include "nn/model.hpp"

/// y = x W^T + b, with W (out, in) as files have it.
namespace mylos::nn {

/// Rows of a linear layer in the table: `stacked` layers that read the same input, as one.
struct Linear {
  std::size_t weight = 0;
  std::size_t bias = 0;
  std::size_t stacked = 1;
};

/// Adds rows `name`.weight (out, in), decayed, and `name`.bias (out), not decayed, to the current unit.
void add_linear_rows(ParameterTable::Builder& builder, const std::string& name, std::size_t in, std::size_t out,
                     float initializer_range);
/// Finds the rows of `stacked` layers, the first of which is called `name`.
Linear find_linear(const ParameterTable& table, const std::string& name, std::size_t stacked = 1);

/// What a linear layer multiplies over T rows; the functions below say which epilogue is whose.
struct LinearProducts {
  std::string name = {};  ///< of the layer
  std::size_t in = 0, out = 0;
  Precision precision = Precision::float32;
  EpilogueKind forward = EpilogueKind::none, input_gradient = EpilogueKind::none;
  bool adds_input_gradient = false;  ///< linear_input_gradient with beta 1
  bool has_float_result = false;     ///< of the forward product
  std::size_t count = 1;             ///< layers of these sizes
};
/// The products of a pass: "<name>/forward", and for training "<name>/weight-gradient" and "<name>/input-gradient".
std::vector<GemmProduct> linear_products(const LinearProducts& linear, std::size_t rows,
                                         ParameterStore::Purpose purpose);

/// y (T, out) = x (T, in) W^T, without the bias: what follows adds it in its own pass.
template <class T>
void linear_without_bias(const Pass& pass, const Linear& linear, const ConstMatrix<T>& x, const Matrix<T>& y);
/// y = x W^T + b.
template <class T>
void linear_forward(const Pass& pass, const Linear& linear, const ConstMatrix<T>& x, const Matrix<T>& y);
/// pre (T, out) = x W^T + b, y = gelu(pre).
template <class T>
void linear_gelu_forward(const Pass& pass, const Linear& linear, const ConstMatrix<T>& x, const Matrix<T>& pre,
                         const Matrix<T>& y);

/// dW += dy^T x for dy (T, out), x (T, in).
template <class T>
void linear_weight_gradient(const Pass& pass, const Linear& linear, const ConstMatrix<T>& x, const ConstMatrix<T>& dy);
/// db += column sums of dy. Workspace as column_sum_workspace says.
template <class T>
void linear_bias_gradient(const Pass& pass, const Linear& linear, const ConstMatrix<T>& dy,
                          const Vector<float>& workspace);
/// dx (T, in) = dy W + beta dx.
template <class T>
void linear_input_gradient(const Pass& pass, const Linear& linear, const ConstMatrix<T>& dy, float beta,
                           const Matrix<T>& dx);
/// dx (T, in) = gelu'(pre) * (dy W), for pre (T, in).
template <class T>
void linear_gelu_input_gradient(const Pass& pass, const Linear& linear, const ConstMatrix<T>& dy, const Matrix<T>& pre,
                                const Matrix<T>& dx);

}  // namespace mylos::nn
