#include "tasks/image_classification/image_labels.hpp"

#include "tests/support/temporary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mylos::tasks {
namespace {

using ::testing::ElementsAre;
using tests::error_of;

TEST(ImageLabels, AModelOfMoreLabelsThanTheDataNamesTheRest) {
  EXPECT_THAT(name_labels(0, {"a", "b"}, "D"), ElementsAre("a", "b"));
  EXPECT_THAT(name_labels(2, {"a", "b"}, "D"), ElementsAre("a", "b"));
  EXPECT_THAT(name_labels(4, {"a", "b"}, "D"), ElementsAre("a", "b", "LABEL_2", "LABEL_3"));
  EXPECT_EQ(error_of([] {
              name_labels(1, {"a", "b"}, "D");
            }),
            "--labels 1: D has 2 labels (a, b); use at least as many");
}

TEST(ImageLabels, AreMatchedByName) {
  EXPECT_THAT(match_labels({"b", "a"}, "D", {"a", "b", "c"}, "M"), ElementsAre(1, 0)) << "a part of the model's";
  EXPECT_THAT(match_labels({"a", "b"}, "D", {"b", "a"}, "M"), ElementsAre(1, 0));
}

TEST(ImageLabels, AreMatchedByNumberWhereNoNameIsKnown) {
  EXPECT_THAT(match_labels({"n01", "n02"}, "D", {"LABEL_0", "LABEL_1"}, "M"), ElementsAre(0, 1));
}

TEST(ImageLabels, ThoseOfAnotherModelAreRefused) {
  EXPECT_EQ(error_of([] {
              match_labels({"a", "b"}, "D", {"1", "2", "3", "4"}, "M");
            }),
            "D has 2 labels (a, b), and M was made for 4 labels (1, 2, 3, ...); use data of the model's labels");
  EXPECT_EQ(error_of([] {
              match_labels({"a", "x"}, "D", {"a", "b"}, "M");
            }),
            "D has 2 labels (a, x), and M was made for 2 labels (a, b); use data of the model's labels")
      << "some names are the model's, so that numbers would be wrong";
}

}  // namespace
}  // namespace mylos::tasks
