#pragma once

#include "core/kernels/gemm.hpp"

#include <functional>
#include <span>
#include <vector>

/// Chooses providers by their timings, and computes products to measure the memory that providers use.
namespace mylos {

/// Seconds of one call of `product` by a provider of the build, the index-th of the names that are measured.
using GemmTimer = std::function<double(std::size_t provider, const GemmProduct& product)>;

/// What a measurement may take and what it decides by.
struct GemmMeasurement {
  std::vector<std::string> providers;  ///< the fallback is the one of products that are not reached
  std::string fallback;
  double seconds = 1.0;  ///< in all
};

/// A choice for `products`, those with most operations in a pass first, as long as the seconds last. Providers take
/// turns, the least time of each counts (other programs only add to it), and another than the fallback is taken where
/// it needs 3 % less time. Products that would take too long are timed with fewer rows.
GemmChoice choose_gemm(const GemmMeasurement& measurement, std::vector<GemmProduct> products, const GemmTimer& timer);

/// The same with operands of constant values in memory that is given back. Nothing is timed where there is one
/// provider.
GemmChoice measure_gemm(const ExecutionSpace& space, const GemmMeasurement& measurement,
                        const std::vector<GemmProduct>& products);

/// Computes each of `products` some times, with operands of constant values in memory that is given back; calls `begin`
/// when the operands stand. Shows what providers, their threads and the C library take for such products.
void warm_up(const ExecutionSpace& space, const Gemm& gemm, std::span<const GemmProduct> products,
             const std::function<void()>& begin);

}  // namespace mylos
