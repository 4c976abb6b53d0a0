#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace mylos::tests {

/// Returns the name of a test that runs once for each GEMM provider: the provider's name, with '_' for '-'.
inline std::string provider_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

}  // namespace mylos::tests
