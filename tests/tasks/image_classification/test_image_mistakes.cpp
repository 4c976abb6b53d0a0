#include "tasks/image_classification/image_mistakes.hpp"

#include "tests/support/temporary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace mylos::tasks {
namespace {

TEST(ImageMistakes, AreReadAsTheyWereWritten) {
  const tests::TemporaryDirectory directory;
  const ImageMistakes mistakes{.images = 300,
                               .wrong = 2,
                               .worst = {{7, "cats/a\xff.png", "cats", "d\"ogs", 0.75, 12.5},
                                         {3, "", "dogs", "cats", 0.5, std::numeric_limits<double>::infinity()}}};
  tests::write_file(directory / "5.json", mistakes_json(mistakes));
  const ImageMistakes read = read_mistakes(directory / "5.json");
  EXPECT_EQ(read.images, 300u);
  EXPECT_EQ(read.wrong, 2u);
  ASSERT_EQ(read.worst.size(), 2u);
  EXPECT_EQ(read.worst[0].index, 7u);
  EXPECT_EQ(read.worst[0].file, "cats/a\xEF\xBF\xBD.png");
  EXPECT_EQ(read.worst[0].label, "cats");
  EXPECT_EQ(read.worst[0].predicted, "d\"ogs");
  EXPECT_EQ(read.worst[0].probability, 0.75);
  EXPECT_EQ(read.worst[0].loss, 12.5);
  EXPECT_EQ(read.worst[1].file, "");
  EXPECT_TRUE(std::isnan(read.worst[1].loss));
}

TEST(ImageMistakes, OfOtherFilesAreRefused) {
  const tests::TemporaryDirectory directory;
  const auto expect_error = [&](const std::string& text, const std::string& what) {
    tests::write_file(directory / "5.json", text);
    EXPECT_THAT(tests::error_of([&] { read_mistakes(directory / "5.json"); }), testing::HasSubstr(what)) << text;
  };
  expect_error("[]", "5.json: expected object, found list");
  expect_error(R"({"images": 3, "wrong": 1})", "worst");
  expect_error(R"({"images": 3, "wrong": 1, "worst": [{"index": -1}]})", "worst[0].index");
  std::string many = "{\"index\": 0, \"label\": \"a\", \"predicted\": \"b\", \"probability\": 1, \"loss\": 1}";
  const std::string one = many;
  for (int i = 0; i < 16; ++i) many += ", " + one;
  expect_error(R"({"images": 30, "wrong": 17, "worst": [)" + many + "]}", "more images than a run keeps");
}

}  // namespace
}  // namespace mylos::tasks
