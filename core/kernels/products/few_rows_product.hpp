#pragma once

#include "core/device.hpp"
#include "core/numeric.hpp"

/// A matrix product whose first operand has few rows: one token per sequence through a linear layer. It is bound by
/// reading the weights, which are read once for all rows. Sums are float. Deterministic: each element is summed in an
/// order that depends on K alone, so a row has the same bits regardless of the other rows.
namespace mylos {

/// y (M, N) = x (M, K) W^T for a weight (N, K), plus a bias (N) unless that is empty; Out is T or float. Errors:
/// std::invalid_argument with all sizes if they do not match.
template <class T, class Out>
void few_rows_product(const ExecutionSpace& space, const ConstMatrix<T>& x, const ConstMatrix<T>& weight,
                      const Matrix<Out>& y, const ConstVector<T>& bias = {});

}  // namespace mylos
