#pragma once

#include "core/kernels/gemm.hpp"

#include <string>
#include <vector>

/// The matrix products of a transformer layer, checked and timed.
namespace mylos::app {

/// C (m, n) = op(A) op(B), with a sum of k terms.
struct Product {
  std::string name;  ///< "qkv/forward"
  Transpose transpose_a = Transpose::no, transpose_b = Transpose::no;
  std::size_t m = 0, n = 0, k = 0;
  bool is_weight_gradient = false;  ///< whose output is float in every precision

  double flops() const { return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k); }
};

/// The twelve products of one training pass of a layer over `tokens` tokens: forward, the input's and the weight's
/// gradient of the four linear layers.
std::vector<Product> layer_products(std::size_t tokens, std::size_t hidden, std::size_t feed_forward);

/// Multiplies random matrices, compares 64 elements with sums in double, and returns the median of `repeats` timings
/// in seconds. Errors: std::runtime_error naming the product and both values where they differ.
double time_product(const std::string& provider, const Product& product, Precision precision, std::size_t repeats);

/// Floating-point operations a second over all `products`, each timed so.
double layer_rate(const std::string& provider, const std::vector<Product>& products, Precision precision,
                  std::size_t repeats);

/// The middle of `values`, which are not none; of an even number the lower middle.
double median(std::vector<double> values);

}  // namespace mylos::app
