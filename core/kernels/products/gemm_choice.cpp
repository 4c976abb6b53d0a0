#include "core/kernels/products/gemm_choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <limits>

namespace mylos {
namespace {

/// Returns the distance of two buckets in doublings.
int doublings(std::size_t one, std::size_t other) {
  return std::abs(static_cast<int>(std::bit_width(one)) - static_cast<int>(std::bit_width(other)));
}

/// Above this number of rows, the fastest provider of a convolution is assumed not to change.
constexpr std::size_t most_convolution_rows = 1024;

}  // namespace

GemmKey key_of(const GemmProduct& product) {
  const bool rows_are_summed = product.transpose_a == Transpose::yes;
  const std::size_t rows = rows_are_summed ? product.k : product.m;
  return {.transpose_a = product.transpose_a,
          .transpose_b = product.transpose_b,
          .input = product.input,
          .output = product.output,
          .n = product.n,
          .k = rows_are_summed ? product.m : product.k,
          .convolution = product.convolution,
          .rows = std::bit_floor(product.convolution ? std::min(rows, most_convolution_rows) : rows)};
}

const std::string& provider_of(const GemmChoice& choice, const GemmKey& key) {
  GemmKey first = key;
  first.rows = 0;
  const std::string* nearest = &choice.fallback;
  int least = std::numeric_limits<int>::max();
  for (auto entry = choice.products.lower_bound(first); entry != choice.products.end(); ++entry) {
    GemmKey same_product = entry->first;
    same_product.rows = key.rows;
    if (same_product != key) break;
    const int distance = doublings(entry->first.rows, key.rows);
    if (distance < least) least = distance, nearest = &entry->second;
  }
  return *nearest;
}

std::string describe(const GemmChoice& choice) {
  std::map<std::string, std::size_t> others;
  for (const auto& [key, name] : choice.products) {
    if (name != choice.fallback) ++others[name];
  }
  std::string text = choice.fallback;
  for (const auto& [name, count] : others) {
    text += fmt::format(", {} for {} of {} products", name, count, choice.products.size());
  }
  return text;
}

}  // namespace mylos
