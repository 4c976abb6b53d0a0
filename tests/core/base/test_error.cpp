#include "core/base/error.hpp"

#include "tests/support/temporary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace mylos {
namespace {

using ::testing::HasSubstr;
using tests::error_of;

TEST(Error, RequireBlamesTheCallerAndSaysWhere) {
  EXPECT_NO_THROW(require(true, "unused"));
  EXPECT_THROW(require(false, "3 rows for 4"), std::invalid_argument);
  const std::string message = error_of([] { require(false, "3 rows for 4"); });
  EXPECT_THAT(message, ::testing::StartsWith("3 rows for 4"));
  EXPECT_THAT(message, HasSubstr("test_error.cpp:"));
  EXPECT_EQ(message.find('\n'), std::string::npos);
}

TEST(Error, EnsureBlamesTheWorld) {
  EXPECT_NO_THROW(ensure(true, "unused"));
  EXPECT_THROW(ensure(false, "vocab.txt is empty"), std::runtime_error);
  EXPECT_EQ(error_of([] { ensure(false, "vocab.txt is empty"); }), "vocab.txt is empty");
}

TEST(Error, FailThrowsWhatItIsTold) {
  EXPECT_THROW(fail("disk full"), std::runtime_error);
  EXPECT_EQ(error_of([] { fail("disk full"); }), "disk full");
}

}  // namespace
}  // namespace mylos
