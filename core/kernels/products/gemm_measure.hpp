#pragma once

#include "core/kernels/products/gemm.hpp"

#include <functional>
#include <span>
#include <vector>

/// Choice of providers by their timings, and products computed to measure the memory that providers use.
namespace mylos {

/// Returns the seconds of one call of `product`; `provider` is an index into GemmMeasurement::providers.
using GemmTimer = std::function<double(std::size_t provider, const GemmProduct& product)>;

/// The candidates and the time limit of a measurement.
struct GemmMeasurement {
  std::vector<std::string> providers;  ///< fallback: used for products that were not timed
  std::string fallback;
  double seconds = 1.0;  ///< time limit for the whole measurement
};

/// Chooses providers for `products`, those with the most operations per pass first, until the time limit. Providers are
/// timed alternately and the minimum counts, since other programs can only add time. Switches from the fallback only
/// for a gain of at least 3 %. Products that would take too long are timed with fewer rows.
GemmChoice choose_gemm(const GemmMeasurement& measurement, std::vector<GemmProduct> products, const GemmTimer& timer);

/// The same with operands of constant values in temporary memory. Times nothing if there is only one provider.
GemmChoice measure_gemm(const ExecutionSpace& space, const GemmMeasurement& measurement,
                        const std::vector<GemmProduct>& products);

/// Computes each of `products` several times, with operands of constant values in temporary memory; calls `begin` after
/// the operands are allocated. Shows how much memory providers, their threads and the C library need for such products.
void warm_up(const ExecutionSpace& space, const Gemm& gemm, std::span<const GemmProduct> products,
             const std::function<void()>& begin);

}  // namespace mylos
