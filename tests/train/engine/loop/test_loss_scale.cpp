#include "tests/support/temporary.hpp"
#include "train/engine/loop/loss_scale.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace mylos::train {
namespace {

using ::testing::HasSubstr;

void note_finite(LossScale& scale, std::size_t times) {
  for (std::size_t i = 0; i < times; ++i) scale.note_finite();
}

TEST(LossScale, DoublesAfterManyFiniteStepsInARow) {
  LossScale scale(1024.0);
  note_finite(scale, LossScale::steps_to_grow - 1);
  EXPECT_EQ(scale.value(), 1024.0);
  EXPECT_EQ(scale.finite_steps(), LossScale::steps_to_grow - 1);
  scale.note_finite();
  EXPECT_EQ(scale.value(), 2048.0);
  EXPECT_EQ(scale.finite_steps(), 0u);
  note_finite(scale, LossScale::steps_to_grow);
  EXPECT_EQ(scale.value(), 4096.0);
}

TEST(LossScale, IsHalvedWhereAGradientIsNotFiniteAndCountsAnew) {
  LossScale scale(1024.0);
  note_finite(scale, LossScale::steps_to_grow - 1);
  EXPECT_TRUE(scale.back_off());
  EXPECT_EQ(scale.value(), 512.0);
  EXPECT_TRUE(scale.back_off());
  EXPECT_EQ(scale.value(), 256.0);
  note_finite(scale, LossScale::steps_to_grow - 1);
  EXPECT_EQ(scale.value(), 256.0);
  scale.note_finite();
  EXPECT_EQ(scale.value(), 512.0);
}

TEST(LossScale, StaysWithinItsBounds) {
  LossScale scale(LossScale::largest);
  note_finite(scale, LossScale::steps_to_grow);
  EXPECT_EQ(scale.value(), LossScale::largest);
  EXPECT_EQ(scale.finite_steps(), 0u);
  scale = LossScale(2.0);
  EXPECT_TRUE(scale.back_off());
  EXPECT_EQ(scale.value(), LossScale::least);
  scale.note_finite();
  EXPECT_FALSE(scale.back_off());
  EXPECT_EQ(scale.value(), LossScale::least);
  EXPECT_EQ(scale.finite_steps(), 1u) << "what cannot be done changes nothing";
}

TEST(LossScale, GoesOnWhereItWas) {
  LossScale scale(64.0, LossScale::steps_to_grow - 1);
  EXPECT_EQ(scale.finite_steps(), LossScale::steps_to_grow - 1);
  scale.note_finite();
  EXPECT_EQ(scale.value(), 128.0);
}

TEST(LossScale, IsOneForEverInOtherPrecisions) {
  for (const Precision precision : {Precision::float32, Precision::bfloat16}) {
    LossScale scale = first_loss_scale(precision, 64.0);
    EXPECT_FALSE(scale.adapts());
    note_finite(scale, 2 * LossScale::steps_to_grow);
    EXPECT_FALSE(scale.back_off());
    EXPECT_EQ(scale.value(), 1.0);
  }
  EXPECT_TRUE(first_loss_scale(Precision::float16, 64.0).adapts());
  EXPECT_EQ(first_loss_scale(Precision::float16, 64.0).value(), 64.0);
}

TEST(LossScale, RefusesWhatWouldRoundOrIsOutOfBounds) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double value : {0.0, 0.5, -2.0, 3.0, 1000.0, 0x1p25, infinity, std::nan("")}) {
    EXPECT_FALSE(is_loss_scale(value)) << value;
    EXPECT_THAT(tests::error_of([&] { LossScale scale(value); }), HasSubstr("not a power of two from 1 to 16777216"));
  }
  for (const double value : {1.0, 2.0, 65536.0, 0x1p24}) EXPECT_TRUE(is_loss_scale(value)) << value;
}

}  // namespace
}  // namespace mylos::train
