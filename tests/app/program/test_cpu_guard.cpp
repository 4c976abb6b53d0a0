#include "app/program/cpu_features.hpp"

#include <gtest/gtest.h>

#include <string>

namespace mylos::app {
namespace {

TEST(CpuGuard, ThisCpuHasWhatTheProgramWasBuiltFor) {
  bool present[cpu_feature_count];
  detect_cpu_features(present);
  char names[64];
  EXPECT_EQ(missing_cpu_features(built_cpu_features, present, names, sizeof names), 0u) << names;
}

TEST(CpuGuard, WhatIsMissingIsNamed) {
  bool built[cpu_feature_count] = {}, present[cpu_feature_count] = {};
  built[0] = built[1] = built[3] = true;
  present[0] = present[2] = true;
  char names[64];
  EXPECT_EQ(missing_cpu_features(built, present, names, sizeof names), 2u);
  EXPECT_EQ(std::string(names), std::string(cpu_feature_names[1]) + " " + cpu_feature_names[3]);
}

TEST(CpuGuard, NamesAreCutToTheRoomThereIs) {
  bool built[cpu_feature_count] = {true, true, true}, present[cpu_feature_count] = {};
  char names[6] = "xxxxx";
  EXPECT_EQ(missing_cpu_features(built, present, names, sizeof names), 3u);
  EXPECT_EQ(std::string(names), (std::string(cpu_feature_names[0]) + " ").substr(0, 5));
}

}  // namespace
}  // namespace mylos::app
