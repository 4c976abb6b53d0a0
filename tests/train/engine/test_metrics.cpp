#include "train/engine/metrics.hpp"

#include <gtest/gtest.h>

namespace mylos::train {
namespace {

TEST(Metrics, TheTextShowsTheFirstThree) {
  EXPECT_EQ(metrics_text({}), "");
  EXPECT_EQ(metrics_text({{"validation_loss", 1.23456}, {"exact", 40.0}, {"f1", 50.125}, {"total", 7.0}}),
            "validation loss 1.2346, exact 40, f1 50.125");
}

}  // namespace
}  // namespace mylos::train
