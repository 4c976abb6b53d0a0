#include "app/program/option_spelling.hpp"

#include "core/base/setting_error.hpp"
#include "tests/app/tiny_run.hpp"

#include <gmock/gmock.h>

/// The engine's messages name settings, and the program spells them as its options.
namespace mylos::tests {
namespace {

using testing::HasSubstr;

class OptionSpelling : public TinyRun {
 protected:
  OptionSpelling() { set_setting_spelling(app::option_spelling); }
  ~OptionSpelling() override { set_setting_spelling(nullptr); }
};

TEST_F(OptionSpelling, IsThatOfTheCommandLine) {
  EXPECT_EQ(setting("micro-batch"), "--micro-batch");
  EXPECT_EQ(setting("micro-batch", "4"), "--micro-batch 4");
  EXPECT_STREQ(SettingError("shard-size", "4", "does not divide the 6 ranks").what(),
               "--shard-size 4: does not divide the 6 ranks");
}

/// Only what the engine names is spelled, whatever files are called.
TEST_F(OptionSpelling, LeavesDataAlone) {
  EXPECT_STREQ(SettingError("output", "`keep` {} --x", "holds `output run`").what(),
               "--output `keep` {} --x: holds `output run`");
  const std::filesystem::path output = directory_ / "`output` `micro-batch 4` {}";
  write_file(output / "`keep`", "not of a run");
  const ProgramRun run =
      run_mylos(with_options({"train", "--model", model_, "--train", train_, "--output", output}, {}));
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.errors,
              HasSubstr("mylos: error: --output " + output.string() +
                        ": contains `keep`, which no training run wrote; choose an empty or a new directory"));
}

}  // namespace
}  // namespace mylos::tests
