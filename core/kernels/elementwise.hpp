#pragma once

#include "core/device.hpp"

#include <cstdint>

/// Sums and values of flat arrays.
namespace mylos {

/// y += x. Same extents.
void add(const ExecutionSpace& space, const ConstVector<float>& x, const Vector<float>& y);

/// Fills `values` with uniform values in [-size, size), drawn by their indices from `stream`. For proofs of kernels.
template <class T>
void fill_uniform(const ExecutionSpace& space, const Vector<T>& values, std::uint64_t stream, float size = 1.0f);

}  // namespace mylos
