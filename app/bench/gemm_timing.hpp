#pragma once

#include "core/kernels/products/gemm_label.hpp"
#include "nn/model.hpp"

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

/// Validates and times the matrix products of a model's training pass with every provider.
namespace mylos::app {

/// Returns the products of one training pass of the model over `rows` rows.
std::vector<GemmProduct> training_products(const nn::Model& model, std::size_t rows);

/// Returns the product's name in the list, regardless of its number of rows, or its sizes if it is not listed.
std::string product_name(std::span<const GemmProduct> products, const GemmLabel& product);

/// Rates of one product with every provider, in operations per second.
struct ProductRates {
  GemmProduct product;
  std::vector<std::vector<double>> rates;  ///< [provider][repeat]

  double rate(std::size_t provider) const;  ///< the median
  std::size_t fastest() const;              ///< index of the provider with the highest median
};

/// Returns how often a device runs a product between the two events of a timing, at most 256 times. `seconds` is the
/// time of one product. The runs take long enough that the events and the wait for the first launch do not distort the
/// timing.
std::size_t launches_per_timing(double seconds);

/// Times products with several providers in turn, so that disturbances affect all of them alike. On a device, a timing
/// is the mean of several consecutive launches. On a host, it is the time of one launch.
class ProductTimer {
 public:
  explicit ProductTimer(std::vector<std::string> providers);
  ~ProductTimer();

  const std::vector<std::string>& providers() const { return providers_; }

  /// Multiplies random matrices, compares 64 elements of each provider's result with sums in double, and appends
  /// `repeats` timings of each provider to `rates`. Errors: std::runtime_error naming the product and both values.
  void time(const GemmProduct& product, std::size_t repeats, ProductRates& rates);

 private:
  std::vector<std::string> providers_;
  std::vector<std::unique_ptr<Gemm>> gemms_;
  std::vector<float> values_a_, values_b_;  ///< random; enough for the largest product so far
};

/// Returns the operations per second over all products. Each product is counted GemmProduct::count times, at the rate
/// that `rate` returns.
double combined_rate(const std::vector<ProductRates>& products, const std::function<double(const ProductRates&)>& rate);
/// Returns combined_rate with the fastest provider of each product.
double ceiling_rate(const std::vector<ProductRates>& products);

}  // namespace mylos::app
