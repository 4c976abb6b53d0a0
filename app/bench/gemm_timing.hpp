#pragma once

#include "core/kernels/gemm_label.hpp"
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

/// Returns the name that this product has in the list, regardless of its number of rows; its sizes if it is not listed.
std::string product_name(std::span<const GemmProduct> products, const GemmLabel& product);

/// Rates of one product with every provider, in operations per second.
struct ProductRates {
  GemmProduct product;
  std::vector<std::vector<double>> rates;  ///< [provider][repeat]

  double rate(std::size_t provider) const;  ///< the median
  std::size_t fastest() const;              ///< index of the provider with the highest median
};

/// Returns how many launches of a product that takes `seconds` a device runs between the two events of a timing: enough
/// that neither the events nor the wait for the first launch count, at most 256.
std::size_t launches_per_timing(double seconds);

/// Times products with several providers in turn, so that disturbances affect all of them alike. On a device a timing
/// is the mean of several launches in a row, on a host that of one.
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
  std::vector<float> values_a_, values_b_;  ///< random; as many as the largest product so far needed
};

/// Returns the operations per second over all products, each run `count` times at the rate that `rate` selects.
double combined_rate(const std::vector<ProductRates>& products, const std::function<double(const ProductRates&)>& rate);
/// Returns the same with each product run by its fastest provider.
double ceiling_rate(const std::vector<ProductRates>& products);

}  // namespace mylos::app
