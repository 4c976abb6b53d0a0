#pragma once

#include "nn/linear_adapters.hpp"

#include <optional>

/// Linear layers y = x W^T + b, with W (out, in) as in model files, plus the adapters of those that have them.
namespace mylos::nn {

/// Indices of a linear layer's tensors in the parameter table. `stacked` layers that read the same input are treated as
/// one.
struct Linear {
  std::size_t weight = 0;
  std::size_t bias = 0;
  std::size_t stacked = 1;
  bool has_bias = true;
  LinearAdapters adapters = {};
};

/// Adds `name`.weight (out, in), with weight decay, and `name`.bias (out), without, to the current unit; no bias if it
/// is nullopt.
void add_linear_tensors(ParameterTable::Builder& builder, const std::string& name, std::size_t in, std::size_t out,
                        Initializer weight, std::optional<Initializer> bias = Initializer{});
/// Looks up `stacked` layers, the first of which is called `name`.
Linear find_linear(const ParameterTable& table, const std::string& name, std::size_t stacked = 1, bool has_bias = true);

/// Describes the matrix products of a linear layer over T rows. The epilogue depends on which of the functions below
/// the layer calls.
struct LinearProducts {
  std::string name = {};  ///< layer name
  std::size_t in = 0, out = 0;
  Precision precision = Precision::float32;
  EpilogueKind forward = EpilogueKind::none;
  bool adds_input_gradient = false;  ///< true if linear_input_gradient is called with beta 1
  bool has_float_result = false;     ///< true if the forward product's result is float
  std::size_t count = 1;             ///< number of layers with these sizes
};
/// Returns the products of a pass: "<name>/forward", and for training also "<name>/weight-gradient" and
/// "<name>/input-gradient".
std::vector<GemmProduct> linear_products(const LinearProducts& linear, std::size_t rows,
                                         ParameterStore::Purpose purpose);

/// y (T, out) = x (T, in) W^T. The kernel that follows adds the bias, if there is one.
template <class T>
void linear_without_bias(const Pass& pass, const Linear& linear, const ConstMatrix<T>& x, const Matrix<T>& y);
/// y = x W^T + b, or without b if there is none.
template <class T>
void linear_forward(const Pass& pass, const Linear& linear, const ConstMatrix<T>& x, const Matrix<T>& y);
/// pre (T, out) = x W^T + b, y = gelu(pre). For the backward pass see gelu_backward.
template <class T>
void linear_gelu_forward(const Pass& pass, const Linear& linear, const ConstMatrix<T>& x, const Matrix<T>& pre,
                         const Matrix<T>& y);

// A layer calls linear_input_gradient and one of the two functions below, in any order, before other layers call them.

/// Returns whether one of the two reads x.
bool reads_input(const Pass& pass, const Linear& linear);

/// dW += dy^T x for dy (T, out), x (T, in). Computes nothing for W if it is frozen.
template <class T>
void linear_weight_gradient(const Pass& pass, const Linear& linear, const ConstMatrix<T>& x, const ConstMatrix<T>& dy);
/// dW += dy^T x, and db += column sums of dy if there is a bias, unless they are frozen, with the product if its
/// provider can. The size of `workspace` is given by column_sum_workspace.
template <class T>
void linear_gradients(const Pass& pass, const Linear& linear, const ConstMatrix<T>& x, const ConstMatrix<T>& dy,
                      const Vector<float>& workspace);
/// dx (T, in) = dy W + beta dx.
template <class T>
void linear_input_gradient(const Pass& pass, const Linear& linear, const ConstMatrix<T>& dy, float beta,
                           const Matrix<T>& dx);

}  // namespace mylos::nn
