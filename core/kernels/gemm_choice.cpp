#include "core/kernels/gemm_choice.hpp"

#include <fmt/format.h>

#include <bit>
#include <cstdlib>
#include <limits>

namespace mylos {
namespace {

/// Distance of two buckets in doublings.
int doublings(std::size_t one, std::size_t other) {
  return std::abs(static_cast<int>(std::bit_width(one)) - static_cast<int>(std::bit_width(other)));
}

}  // namespace

GemmKey key_of(const GemmProduct& product) {
  const bool rows_are_summed = product.transpose_a == Transpose::yes;
  return {product.transpose_a,
          product.transpose_b,
          product.input,
          product.output,
          product.n,
          rows_are_summed ? product.m : product.k,
          std::bit_floor(rows_are_summed ? product.k : product.m)};
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
