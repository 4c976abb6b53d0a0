#include "core/base/setting_error.hpp"

#include "tests/support/temporary.hpp"

#include <gtest/gtest.h>

#include <fmt/format.h>

namespace mylos {
namespace {

using tests::error_of;

std::string in_capitals(std::string_view name, std::string_view value) {
  return fmt::format("MYLOS_{}{}{}", name, value.empty() ? "" : "=", value);
}

/// Spells settings as environment variables while it exists.
class SpelledInCapitals {
 public:
  SpelledInCapitals() { set_setting_spelling(in_capitals); }
  ~SpelledInCapitals() { set_setting_spelling(nullptr); }
  SpelledInCapitals(const SpelledInCapitals&) = delete;
  SpelledInCapitals& operator=(const SpelledInCapitals&) = delete;
};

TEST(Setting, IsInBackquotesUnlessAProgramSpellsIt) {
  EXPECT_EQ(setting("micro-batch"), "`micro-batch`");
  EXPECT_EQ(setting("checkpoint-every", "never"), "`checkpoint-every never`");
  {
    const SpelledInCapitals spelled;
    EXPECT_EQ(setting("KEEP"), "MYLOS_KEEP");
    EXPECT_EQ(setting("KEEP", "3"), "MYLOS_KEEP=3");
  }
  EXPECT_EQ(setting("keep"), "`keep`");
}

TEST(Setting, ErrorNamesItsValueAndSaysWhy) {
  const SettingError error("shard-size", "4", "does not divide the 6 ranks");
  EXPECT_STREQ(error.what(), "`shard-size 4`: does not divide the 6 ranks");
  EXPECT_EQ(error.name(), "shard-size");
  EXPECT_EQ(error.text(), "does not divide the 6 ranks");
  EXPECT_STREQ(SettingError("deterministic", "ranks have 1 to 2 threads").what(),
               "`deterministic`: ranks have 1 to 2 threads");
  EXPECT_THROW(throw error, std::runtime_error);
}

/// Values and texts hold names of files, which may look like a setting.
TEST(Setting, DataThatLookLikeASettingStayAsTheyAre) {
  const auto message = [] {
    return error_of([] { throw SettingError("OUTPUT", "`KEEP` {} %s", "holds `OUTPUT` and --OUTPUT"); });
  };
  EXPECT_EQ(message(), "`OUTPUT `KEEP` {} %s`: holds `OUTPUT` and --OUTPUT");
  const SpelledInCapitals spelled;
  EXPECT_EQ(message(), "MYLOS_OUTPUT=`KEEP` {} %s: holds `OUTPUT` and --OUTPUT");
}

}  // namespace
}  // namespace mylos
