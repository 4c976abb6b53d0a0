// In a build without HDF5.
#include <gtest/gtest.h>

#include "data/images/image_file.hpp"
#include "data/images/synthetic_images.hpp"
#include "tests/support/temporary.hpp"

namespace mylos::data {
namespace {

TEST(ImageFileWithoutHdf5, EveryUseSaysWhatToDo) {
  const std::string message =
      "F: this build has no HDF5 for prepared images; use the images, or build with -DMYLOS_ENABLE_HDF5=ON";
  const auto set = make_synthetic_images("synthetic:2x2x2", 1);
  EXPECT_EQ(tests::error_of([&] { write_image_file("F", *set, {{0, 12, 0}}, 0); }), message);
  EXPECT_EQ(tests::error_of([] { open_image_file("F"); }), message);
  EXPECT_FALSE(is_image_file("F"));
}

}  // namespace
}  // namespace mylos::data
