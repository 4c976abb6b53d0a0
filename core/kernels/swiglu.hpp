#pragma once

#include "core/device.hpp"
#include "core/numeric.hpp"

/// SwiGLU (Shazeer 2020): silu(gate) * up, with silu(x) = x / (1 + exp(-x)). Elementwise and deterministic.
namespace mylos {

/// y (M, F) = silu(gate) * up for gate_up (M, 2F) = the columns of gate, then those of up.
template <class T>
void swiglu(const ExecutionSpace& space, const ConstMatrix<T>& gate_up, const Matrix<T>& y);

/// Works in place, so that the backward pass needs no second array of 2F columns: gate_up (M, 2F) becomes its gradient,
/// given dy (M, F), and dy becomes y, which the next layer's weight gradient reads.
template <class T>
void swiglu_backward(const ExecutionSpace& space, const Matrix<T>& gate_up, const Matrix<T>& dy);

}  // namespace mylos
