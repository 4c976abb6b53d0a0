#include "app/bench/calibration.hpp"

#include "core/base/processors.hpp"
#include "tests/app/tiny_run.hpp"
#include "tests/support/paths.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

/// What bench step has measured, and who uses it.
namespace mylos::app {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

/// Of the tiny model on one thread of this machine.
Calibration tiny() {
  return {.device = processor_name(),
          .threads = 1,
          .layers = 2,
          .hidden = 16,
          .flops = 1e9,
          .bandwidth = 1e9,
          .products = 2e9};
}

TEST(Calibration, IsReadAsItWasWritten) {
  const Calibration read = parse_calibration(to_json(tiny()), "it");
  EXPECT_EQ(read.products, 2e9);
  EXPECT_EQ(read.flops, 1e9);
  Calibration without = tiny();
  without.products = 0.0;
  EXPECT_EQ(parse_calibration(to_json(without), "it").products, 0.0);
}

TEST(Calibration, WhatNoMachineHasIsRefused) {
  const auto complaint = [](const char* member, const nlohmann::ordered_json& value) {
    nlohmann::ordered_json object = to_json(tiny());
    object[member] = value;
    return tests::error_of([&] { parse_calibration(object, "it"); });
  };
  EXPECT_EQ(complaint("host", "x"), "it: \"host\" is neither true nor false");
  EXPECT_EQ(complaint("layers", 0u), "it: layers: expected a whole number above 0");
  EXPECT_EQ(complaint("threads", 0u), "it: threads: expected a whole number above 0");
  EXPECT_EQ(complaint("flops_per_second", 1e-300), "it: \"flops_per_second\" is not a number from 1e6 to 1e18");
  EXPECT_EQ(complaint("bytes_per_second", "x"), "it: \"bytes_per_second\" is not a number from 1e6 to 1e18");
}

TEST(Calibration, ProductsAreThoseOfTheSameDeviceThreadsModelAndPrecision) {
  const std::vector<Calibration> measured = {tiny()};
  EXPECT_EQ(measured_products(tiny(), measured), 2e9);
  EXPECT_EQ(measured_products(tiny(), {}), 0.0);
  const auto expect_unknown = [&](const auto& change) {
    Calibration other = tiny();
    change(other);
    EXPECT_EQ(measured_products(other, measured), 0.0);
  };
  expect_unknown([](Calibration& other) { other.device = "another"; });
  expect_unknown([](Calibration& other) { other.threads = 2; });
  expect_unknown([](Calibration& other) { other.layers = 3; });
  expect_unknown([](Calibration& other) { other.hidden = 32; });
  expect_unknown([](Calibration& other) { other.precision = Precision::bfloat16; });
}

TEST(Calibration, AGpuIsTheSameWithAnyThreads) {
  Calibration gpu = tiny();
  gpu.host = false;
  const std::vector<Calibration> measured = {gpu};
  gpu.threads = 8;
  EXPECT_EQ(measured_products(gpu, measured), 2e9);
}

using Progress = tests::TinyRun;

TEST_F(Progress, SaysTheShareOfGemmWhereThatWasMeasured) {
  const tests::EnvironmentVariable threads("OMP_NUM_THREADS", "1");
  const auto train = [this](const std::filesystem::path& output) {
    return tests::run_mylos({"train", "--model", model_, "--train", train_, "--output", output, "--steps", "2",
                             "--batch", "4", "--max-length", "60", "--doc-stride", "20"});
  };
  const tests::ProgramRun before = train(directory_ / "before");
  EXPECT_THAT(before.errors, AllOf(HasSubstr("step 2/2"), Not(HasSubstr("% of GEMM"))));
  save_calibration(tiny());
  EXPECT_THAT(train(run_).errors, ContainsRegex("step 2/2 .* tokens/s  [0-9]+ % of GEMM  "));
}

}  // namespace
}  // namespace mylos::app
