#include "train/monitor/profile.hpp"

#include <gtest/gtest.h>

namespace mylos::train {
namespace {

StepReport step_of(double seconds, const StepParts& parts) {
  StepReport report;
  report.seconds = seconds;
  report.parts = parts;
  return report;
}

TEST(Profile, AddsUpWhatTheRunDid) {
  Profile profile;
  profile.step(step_of(2.0, {.data = 0.25, .exchange = 0.5, .update = 0.25}));
  profile.step(step_of(4.0, {.data = 0.25, .exchange = 0.5, .update = 0.25}));
  profile.evaluation({.step = 2, .seconds = 1.0, .metrics = {}});
  profile.checkpoint({.step = 2, .file = {}, .seconds = 0.5});
  EXPECT_EQ(profile.table(10.0),
            "action                              calls    mean (s)   total (s)       %\n"
            "step                                    2     3.00000        6.00    60.0\n"
            "  forward and backward passes           2     2.00000        4.00    40.0\n"
            "  waiting for other ranks               2     0.50000        1.00    10.0\n"
            "  optimizer                             2     0.25000        0.50     5.0\n"
            "  making batches                        2     0.25000        0.50     5.0\n"
            "evaluation                              1     1.00000        1.00    10.0\n"
            "checkpoint                              1     0.50000        0.50     5.0\n"
            "start, exports and the rest             1     2.50000        2.50    25.0\n"
            "all                                     1    10.00000       10.00   100.0\n");
}

// The host of a device sees no exchange and no update, and batches of the first step only.
TEST(Profile, LeavesOutWhatIsNotKnown) {
  Profile profile;
  profile.step(step_of(2.0, {.data = 0.5}));
  EXPECT_EQ(profile.table(2.0),
            "action                              calls    mean (s)   total (s)       %\n"
            "step                                    1     2.00000        2.00   100.0\n"
            "start, exports and the rest             1     0.00000        0.00     0.0\n"
            "all                                     1     2.00000        2.00   100.0\n");
}

}  // namespace
}  // namespace mylos::train
