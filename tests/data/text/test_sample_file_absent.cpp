// In a build without HDF5.
#include <gtest/gtest.h>

#include "data/text/sample_file.hpp"
#include "tests/support/temporary.hpp"

namespace mylos::data {
namespace {

TEST(SampleFileWithoutHdf5, EveryUseSaysWhatToDo) {
  const std::string message =
      "F: this build has no HDF5 for prepared samples; use the documents, or build with -DMYLOS_ENABLE_HDF5=ON";
  EXPECT_EQ(tests::error_of([] { write_sample_file("F", {}); }), message);
  EXPECT_EQ(tests::error_of([] { read_sample_file("F"); }), message);
  EXPECT_FALSE(is_sample_file("F"));
}

}  // namespace
}  // namespace mylos::data
