#pragma once

#include "core/kernels/products/gemm_providers.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace mylos::tests {

/// Returns whether this build has the provider `name` of matrix products, and this machine can use it.
inline bool has_gemm_provider(std::string_view name) {
  const std::vector<std::string> providers = gemm_providers();
  return std::ranges::find(providers, name) != providers.end();
}

}  // namespace mylos::tests
