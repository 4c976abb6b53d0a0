#pragma once

#include "core/kernels/products/gemm_product.hpp"

#include <compare>
#include <map>
#include <optional>
#include <string>
#include <tuple>

/// The assignment of providers to products: a value that can be compared, sent and stored.
namespace mylos {

/// The properties by which a provider is chosen. One of a product's three extents is the number of rows T of a batch,
/// which varies between batches: m, or k if A is transposed (a weight gradient). The other two are fixed. Convolutions
/// of 1,024 rows and more are in one bucket: providers compute them in blocks or image by image, so the cost per call
/// is negligible.
struct GemmKey {
  Transpose transpose_a = Transpose::no, transpose_b = Transpose::no;
  Precision input = Precision::float32, output = Precision::float32;
  std::size_t n = 0;
  std::size_t k = 0;                            ///< m if A is transposed
  std::optional<Convolution> convolution = {};  ///< its rows are the output pixels
  std::size_t rows = 0;                         ///< bucket: T rounded down to a power of two

  auto operator<=>(const GemmKey&) const = default;
};
inline auto members(GemmKey& key) {
  // This does not compile if a member is missing.
  auto& [transpose_a, transpose_b, input, output, n, k, convolution, rows] = key;
  return std::tie(transpose_a, transpose_b, input, output, n, k, convolution, rows);
}

GemmKey key_of(const GemmProduct& product);

/// A default provider, and faster ones for some products.
struct GemmChoice {
  std::string fallback;                     ///< for products that are not in the table
  std::map<GemmKey, std::string> products;  ///< provider by product

  bool operator==(const GemmChoice&) const = default;
};
inline auto members(GemmChoice& choice) {
  auto& [fallback, products] = choice;  // does not compile if a member is missing
  return std::tie(fallback, products);
}

/// Returns the provider for `key`: the provider of its bucket, else that of the nearest bucket of the same product,
/// else the fallback.
const std::string& provider_of(const GemmChoice& choice, const GemmKey& key);

/// Describes the choice in one line: "onednn", "onednn, kokkos-kernels for 3 of 12 products".
std::string describe(const GemmChoice& choice);

}  // namespace mylos
