#pragma once

#include "core/kernels/products/gemm.hpp"

#include <span>
#include <string>
#include <string_view>

/// The proof that a provider computes on this device what matrix products are, before a run uses it.
namespace mylos {

/// Computes each of `products` with the provider called `name`, convolutions as the product of their matrices. Compares
/// 4,096 elements of each, drawn at random and along the last rows and columns, with sums in double, and the sums that
/// a provider adds to weight gradients likewise. Results hold NaN where the provider must write. Takes the memory of
/// the largest operands, and waits for the device. Returns the first fault or error on one line; empty if all agree.
std::string gemm_fault(const ExecutionSpace& space, std::string_view name, std::span<const GemmProduct> products);

}  // namespace mylos
