#pragma once

#include "core/kernels/gemm_label.hpp"
#include "nn/model.hpp"

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

/// The matrix products of a model's training pass, checked and timed by every provider.
namespace mylos::app {

/// The products of one training pass of the model over `rows` rows.
std::vector<GemmProduct> training_products(const nn::Model& model, std::size_t rows);

/// The name that this product has in the list, whatever the rows; its sizes where it has none.
std::string product_name(std::span<const GemmProduct> products, const GemmLabel& product);

/// One product's rates in operations a second, by every provider.
struct ProductRates {
  GemmProduct product;
  std::vector<std::vector<double>> rates;  ///< [provider][timing]

  double rate(std::size_t provider) const;  ///< the median
  std::size_t fastest() const;              ///< the provider with the highest
};

/// Times products by several providers in turn, so that what disturbs one disturbs all.
class ProductTimer {
 public:
  explicit ProductTimer(std::vector<std::string> providers);
  ~ProductTimer();

  const std::vector<std::string>& providers() const { return providers_; }

  /// Multiplies random matrices, compares 64 elements of each provider's result with sums in double, and adds `repeats`
  /// timings of each provider to `rates`. Errors: std::runtime_error naming the product and both values.
  void time(const GemmProduct& product, std::size_t repeats, ProductRates& rates);

 private:
  std::vector<std::string> providers_;
  std::vector<std::unique_ptr<Gemm>> gemms_;
  std::vector<float> values_a_, values_b_;  ///< random, as many as the largest product needed
};

/// Operations a second over all products, each done `count` times at the rate that `rate` takes from its timings.
double combined_rate(const std::vector<ProductRates>& products, const std::function<double(const ProductRates&)>& rate);
/// The same, each product by its fastest provider.
double ceiling_rate(const std::vector<ProductRates>& products);

}  // namespace mylos::app
