#include "app/bench/calibration.hpp"

#include "core/base/process/processors.hpp"
#include "families/bert/bert_model.hpp"
#include "tests/app/tiny_run.hpp"
#include "tests/support/paths.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

/// The measurements of bench step, and the commands that use them.
namespace mylos::app {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

/// Returns the model that tests::TinyRun trains.
std::unique_ptr<nn::Model> tiny_network() {
  return families::make_bert_question_answering(
      {.vocabulary = 81, .hidden = 16, .layers = 2, .heads = 2, .feed_forward = 32, .positions = 64, .token_types = 2},
      Precision::float32);
}

/// Returns the calibration of the tiny model on one thread of this machine.
Calibration tiny() {
  return {.device = processor_name(),
          .threads = 1,
          .model = model_size(*tiny_network()),
          .flops = 1e9,
          .bandwidth = 1e9,
          .products = 2e9};
}

TEST(Calibration, IsReadAsItWasWritten) {
  const Calibration read = parse_calibration(to_json(tiny()), "it");
  EXPECT_EQ(read.products, 2e9);
  EXPECT_EQ(read.flops, 1e9);
  EXPECT_EQ(read.model.parameters, tiny().model.parameters);
  EXPECT_EQ(read.model.flops_per_row, tiny().model.flops_per_row);
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
  EXPECT_EQ(complaint("parameters", 0u), "it: parameters: expected a whole number above 0");
  EXPECT_EQ(complaint("flops_per_row", 0.0), "it: \"flops_per_row\" is not a number above 0");
  EXPECT_EQ(complaint("threads", 0u), "it: threads: expected a whole number above 0");
  EXPECT_EQ(complaint("flops_per_second", 1e-300), "it: \"flops_per_second\" is not a number from 1e6 to 1e18");
  EXPECT_EQ(complaint("bytes_per_second", "x"), "it: \"bytes_per_second\" is not a number from 1e6 to 1e18");
}

TEST(Calibration, OneOfAnEarlierProgramAsksForANewMeasurement) {
  nlohmann::ordered_json earlier = to_json(tiny());
  earlier.erase("parameters");
  earlier.erase("flops_per_row");
  earlier["layers"] = 2;
  earlier["hidden"] = 16;
  EXPECT_EQ(tests::error_of([&] { parse_calibration(earlier, "it"); }),
            "it: an earlier program wrote this calibration; run `mylos bench step` again");
}

TEST(Calibration, DistanceIsOfParametersAndOfOperationsARow) {
  const ModelSize one = tiny().model;
  EXPECT_EQ(distance(one, one), 0.0);
  const double twice = distance(one, {2 * one.parameters, one.flops_per_row});
  EXPECT_DOUBLE_EQ(twice, std::log(2.0));
  EXPECT_DOUBLE_EQ(distance(one, {one.parameters, one.flops_per_row / 2.0}), twice);
  EXPECT_DOUBLE_EQ(distance(one, {2 * one.parameters, one.flops_per_row / 2.0}), 2.0 * twice);
}

TEST(Calibration, SizesAreThoseOfTheModel) {
  const ModelSize size = model_size(*tiny_network());
  const std::size_t layer = 4 * (16 * 16 + 16) + 2 * 16 * 32 + 32 + 16 + 4 * 16;
  EXPECT_EQ(size.parameters, (81 + 64 + 2 + 2) * 16u + 2 * layer + 2 * 16 + 2);
  EXPECT_EQ(size.flops_per_row, 6.0 * (2 * (4.0 * 16 * 16 + 2.0 * 16 * 32 + 2.0 * 16) + 2.0 * 16));
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
  expect_unknown([](Calibration& other) { ++other.model.parameters; });
  expect_unknown([](Calibration& other) { other.model.flops_per_row *= 1.001; });
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
