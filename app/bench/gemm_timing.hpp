#pragma once

#include "core/kernels/gemm_label.hpp"
#include "data/huggingface/bert_config.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

/// The matrix products of a BERT's training pass, checked and timed by every provider.
namespace mylos::app {

/// C (m, n) = op(A) op(B), with a sum of k terms.
struct Product {
  std::string name;  ///< "qkv/forward"
  Transpose transpose_a = Transpose::no, transpose_b = Transpose::no;
  std::size_t m = 0, n = 0, k = 0;
  Precision input = Precision::float32, output = Precision::float32;  ///< of A and B; of C
  double calls = 1.0;                                                 ///< of one training pass

  double flops() const { return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k); }
};

/// The products of one training pass over `tokens` tokens: forward, the input's and the weight's gradient of the four
/// linear layers of each encoder layer, and of the head.
std::vector<Product> model_products(const data::BertConfig& model, std::size_t tokens, Precision precision);

/// The name that model_products gives this product, whatever the tokens; its sizes where it has none.
std::string product_name(const data::BertConfig& model, const GemmLabel& product);

/// One product's rates in operations a second, by every provider.
struct ProductRates {
  Product product;
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
  void time(const Product& product, std::size_t repeats, ProductRates& rates);

 private:
  std::vector<std::string> providers_;
  std::vector<std::unique_ptr<Gemm>> gemms_;
  std::vector<float> values_a_, values_b_;  ///< random, as many as the largest product needed
};

/// Operations a second over all products, each done `calls` times at the rate that `rate` takes from its timings.
double combined_rate(const std::vector<ProductRates>& products, const std::function<double(const ProductRates&)>& rate);
/// The same, each product by its fastest provider.
double ceiling_rate(const std::vector<ProductRates>& products);

}  // namespace mylos::app
