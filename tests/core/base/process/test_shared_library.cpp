#include "core/base/process/shared_library.hpp"

#include <gmock/gmock.h>

namespace mylos {
namespace {

TEST(SharedLibrary, FindsFunctions) {
  const SharedLibrary library("libm.so.6");
  EXPECT_EQ(library.obstacle(), "");
  double (*cosine)(double) = nullptr;
  ASSERT_TRUE(library.find("cos", cosine));
  EXPECT_EQ(cosine(0.0), 1.0);
  EXPECT_FALSE(library.find("no_such_function", cosine));
  EXPECT_EQ(cosine, nullptr);
}

TEST(SharedLibrary, SaysWhyItDidNotOpen) {
  const SharedLibrary library("libno-such-library.so.7");
  EXPECT_THAT(library.obstacle(), testing::HasSubstr("libno-such-library.so.7"));
  double (*cosine)(double) = nullptr;
  EXPECT_FALSE(library.find("cos", cosine));
}

}  // namespace
}  // namespace mylos
