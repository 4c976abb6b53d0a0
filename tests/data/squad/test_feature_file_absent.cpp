// In a build without HDF5.
#include <gtest/gtest.h>

#include "data/squad/feature_file.hpp"
#include "tests/support/temporary.hpp"

namespace mylos::data {
namespace {

TEST(FeatureFileWithoutHdf5, EveryUseSaysWhatToDo) {
  const std::string message =
      "F: this build has no HDF5 for feature files; use the .json, or build with -DMYLOS_ENABLE_HDF5=ON";
  EXPECT_EQ(tests::error_of([] { write_feature_file("F", {}); }), message);
  EXPECT_EQ(tests::error_of([] { read_feature_file("F"); }), message);
}

}  // namespace
}  // namespace mylos::data
