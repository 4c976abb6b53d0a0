#pragma once

#include "core/kernels/gemm_product.hpp"

#include <compare>
#include <map>
#include <optional>
#include <string>
#include <tuple>

/// Which provider computes which products: a value that can be compared, sent and written down.
namespace mylos {

/// What a provider is chosen by. Of a product's three extents one is the rows T of a batch, which differ from one batch
/// to the next: m, or k where A is transposed (a weight's gradient). The others are the product's own. Convolutions of
/// 1,024 rows and more are in one bucket: providers compute them in blocks, or image by image, and what they do once
/// for each call is little beside that.
struct GemmKey {
  Transpose transpose_a = Transpose::no, transpose_b = Transpose::no;
  Precision input = Precision::float32, output = Precision::float32;
  std::size_t n = 0;
  std::size_t k = 0;                            ///< m where A is transposed
  std::optional<Convolution> convolution = {};  ///< its rows are the pixels of its result
  std::size_t rows = 0;                         ///< T rounded down to a power of two: its bucket

  auto operator<=>(const GemmKey&) const = default;
};

GemmKey key_of(const GemmProduct& product);

/// A provider for everything, and those that are better for some products.
struct GemmChoice {
  std::string fallback;                     ///< of products that are not in the table
  std::map<GemmKey, std::string> products;  ///< by what they are

  bool operator==(const GemmChoice&) const = default;
};
inline auto members(GemmChoice& choice) { return std::tie(choice.fallback, choice.products); }

/// The provider for `key`: the one of its bucket, else of the bucket of the same product that is nearest, else the
/// fallback.
const std::string& provider_of(const GemmChoice& choice, const GemmKey& key);

/// What it says in a line: "onednn", "onednn, kokkos-kernels for 3 of 12 products".
std::string describe(const GemmChoice& choice);

}  // namespace mylos
