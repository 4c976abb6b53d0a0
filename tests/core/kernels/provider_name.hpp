#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace mylos::tests {

/// The name of a test that runs once for each provider of products: that of the provider, with '_' for '-'.
inline std::string provider_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

}  // namespace mylos::tests
