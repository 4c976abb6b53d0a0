#include "app/runs/resumption.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace mylos::tests {
namespace {

using nlohmann::ordered_json;
using ::testing::ThrowsMessage;

const std::vector<tasks::DataChecksum> data = {{"train", "train.json", 0x12abU}, {"dev", "dev.json", 7U}};

TEST(Resumption, TakesDataWithTheSameChecksums) {
  const ordered_json saved = {{"resolved", {{"checksums", {{"train", "000012ab"}, {"dev", "00000007"}}}}}};
  EXPECT_NO_THROW(app::check_resumed_data(saved, "a.h5", data));
}

TEST(Resumption, NamesTheFileThatHoldsOtherData) {
  const ordered_json saved = {{"resolved", {{"checksums", {{"train", "000012ab"}, {"dev", "00000008"}}}}}};
  EXPECT_THAT([&] { app::check_resumed_data(saved, "a.h5", data); },
              ThrowsMessage<std::runtime_error>(
                  "--dev dev.json: its data differ from those that the run of a.h5 read: the checksum was 00000008 and "
                  "is 00000007; restore the file, or start over with another --output or --overwrite --resume "
                  "never"));
}

TEST(Resumption, TakesWhatAnOlderVersionDidNotNote) {
  EXPECT_NO_THROW(app::check_resumed_data(ordered_json::object(), "a.h5", data));
  EXPECT_NO_THROW(app::check_resumed_data({{"resolved", {{"steps", 3}}}}, "a.h5", data));
  EXPECT_NO_THROW(app::check_resumed_data({{"resolved", nullptr}}, "a.h5", data));
}

ordered_json run_with(std::size_t ranks, std::size_t micro_batch, bool deterministic = false) {
  return {{"deterministic", deterministic},
          {"resolved", {{"ranks", ranks}, {"mode", "replicated"}, {"micro-batch", micro_batch}}}};
}

TEST(Resumption, SaysWhereSumsHaveAnotherOrder) {
  EXPECT_EQ(app::changed_layout_line(run_with(2, 4), run_with(2, 4)), "");
  EXPECT_EQ(app::changed_layout_line(run_with(2, 4), run_with(2, 2)),
            "micro-batch 2, before 4: losses may differ in their last digits from those of an uninterrupted run");
  EXPECT_EQ(app::changed_layout_line(run_with(2, 4), run_with(1, 8)),
            "ranks 1, before 2; micro-batch 8, before 4: losses may differ in their last digits from those of an "
            "uninterrupted run");
  EXPECT_EQ(app::changed_layout_line(run_with(2, 1, true), run_with(4, 1, true)), "");
  EXPECT_EQ(app::changed_layout_line(ordered_json(), run_with(1, 8)), "") << "a new run";
  EXPECT_EQ(app::changed_layout_line(ordered_json::object(), run_with(1, 8)), "");
}

}  // namespace
}  // namespace mylos::tests
