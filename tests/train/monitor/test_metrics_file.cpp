#include "tests/support/temporary.hpp"
#include "train/monitor/metrics_file.hpp"
#include "train/monitor/metrics_reader.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <limits>
#include <sstream>
#include <vector>

namespace mylos::train {
namespace {

using OrderedJson = nlohmann::ordered_json;

const StepReport report = {.step = 3,
                           .epoch = 0.75,
                           .loss = 1.25,
                           .gradient_norm = 0.1,
                           .learning_rate = 3e-5,
                           .sequences = 12,
                           .tokens = 3000,
                           .seconds = 1.5,
                           .memory = 1u << 30,
                           .sent = 4096,
                           .parts = {.data = 0.125, .exchange = 0.25, .update = 0.5}};

double no_clock() { return 1000.5; }

std::vector<OrderedJson> lines_of(const std::filesystem::path& path) {
  std::istringstream text(tests::read_file(path));
  std::vector<OrderedJson> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(OrderedJson::parse(line));
  return lines;
}

TEST(MetricsFile, WritesOneObjectAStepAsItHappens) {
  const tests::TemporaryDirectory directory;
  MetricsFile file(directory / "metrics.jsonl", no_clock);
  file.step(report);
  EXPECT_EQ(
      tests::read_file(directory / "metrics.jsonl"),
      R"({"kind":"step","step":3,"epoch":0.75,"loss":1.25,"gradient_norm":0.1,"learning_rate":3e-05,"sequences":12,)"
      R"("tokens":3000,"seconds":1.5,"tokens_per_second":2000.0,"memory":1073741824,"sent":4096,)"
      R"("data_seconds":0.125,"exchange_seconds":0.25,"update_seconds":0.5,"time":1000.5})"
      "\n");
}

TEST(MetricsFile, NamesTheWorkThatTheRunCounts) {
  const tests::TemporaryDirectory directory;
  MetricsFile file(directory / "metrics.jsonl", no_clock);
  WorkKind images = {.name = "images", .singular = "image", .rows = 50, .samples = "groups", .sample = "group"};
  file.start({.work = images});
  file.step(report);
  images = {.name = "images", .singular = "image", .rows = 250, .samples = "images", .sample = "image"};
  file.start({.work = images});
  file.step(report);
  const auto lines = lines_of(directory / "metrics.jsonl");
  EXPECT_EQ(lines[0].at("groups"), 12);
  EXPECT_EQ(lines[0].at("images"), 60);
  EXPECT_EQ(lines[0].at("images_per_second"), 40.0);
  EXPECT_EQ(lines[1].at("images"), 12) << "each sample is an image";
  for (const OrderedJson& line : lines) {
    EXPECT_TRUE(is_step_row(line));
    for (const char* name : {"tokens", "tokens_per_second", "sequences"}) EXPECT_FALSE(line.contains(name)) << name;
  }
}

TEST(MetricsFile, WritesEveryMetricOfAnEvaluation) {
  const tests::TemporaryDirectory directory;
  MetricsFile file(directory / "metrics.jsonl", no_clock);
  file.step(report);
  file.evaluation(
      {.step = 3, .seconds = 2.0, .metrics = {{"validation_loss", 1.5}, {"exact", 40.0}, {"f1", 50.5}}, .best = true});
  const auto lines = lines_of(directory / "metrics.jsonl");
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(
      lines[1].dump(),
      R"({"kind":"evaluation","step":3,"validation_loss":1.5,"exact":40.0,"f1":50.5,"seconds":2.0,"best":true,"time":1000.5})");
}

TEST(MetricsFile, WritesACheckpointThatWasWritten) {
  const tests::TemporaryDirectory directory;
  MetricsFile file(directory / "metrics.jsonl", no_clock);
  file.checkpoint({.step = 3, .file = "run/checkpoints/step-000003.h5", .bytes = 100, .seconds = 0.5});
  file.checkpoint({.step = 4, .file = "run/checkpoints/step-000004.h5", .error = "the disk is full"});
  EXPECT_EQ(tests::read_file(directory / "metrics.jsonl"),
            R"({"kind":"checkpoint","step":3,"checkpoint":"step-000003.h5","bytes":100,"seconds":0.5,"time":1000.5})"
            "\n");
}

TEST(MetricsFile, SaysNothingOfTimesThatNobodyKnows) {
  const tests::TemporaryDirectory directory;
  StepReport unknown = report;
  unknown.parts.exchange.reset();
  unknown.parts.update.reset();
  MetricsFile(directory / "metrics.jsonl").step(unknown);
  for (const char* name : {"exchange_seconds", "update_seconds"}) {
    EXPECT_FALSE(lines_of(directory / "metrics.jsonl")[0].contains(name)) << name;
  }
}

TEST(MetricsFile, HasTheLossScaleWhereOneAdapts) {
  const tests::TemporaryDirectory directory;
  MetricsFile file(directory / "metrics.jsonl");
  StepReport skipped = report;
  skipped.loss_scale = 65536.0;
  skipped.skipped = true;
  skipped.gradient_norm = std::numeric_limits<double>::infinity();
  file.step(skipped);
  const OrderedJson line = lines_of(directory / "metrics.jsonl")[0];
  EXPECT_EQ(line.at("loss_scale"), 65536.0);
  EXPECT_EQ(line.at("skipped"), true);
  EXPECT_TRUE(line.at("gradient_norm").is_null());
}

TEST(MetricsFile, ContinuesAFile) {
  const tests::TemporaryDirectory directory;
  for (int start = 0; start < 2; ++start) MetricsFile(directory / "metrics.jsonl").step(report);
  EXPECT_EQ(lines_of(directory / "metrics.jsonl").size(), 2u);
}

TEST(MetricsFile, StaysJsonWhereANumberIsNot) {
  const tests::TemporaryDirectory directory;
  MetricsFile file(directory / "metrics.jsonl");
  StepReport broken = report;
  broken.loss = std::numeric_limits<double>::quiet_NaN();
  file.step(broken);
  EXPECT_TRUE(lines_of(directory / "metrics.jsonl")[0].at("loss").is_null());
}

TEST(MetricsFile, LinesAreToldByTheirKindAndOldOnesByWhatTheyHave) {
  const auto kinds_of = [](const OrderedJson& row) {
    return std::vector<bool>{is_step_row(row), is_evaluation_row(row), is_checkpoint_row(row)};
  };
  using Kinds = std::vector<bool>;
  EXPECT_EQ(kinds_of({{"kind", "step"}, {"step", 1}, {"images", 8}}), (Kinds{true, false, false}));
  EXPECT_EQ(kinds_of({{"kind", "evaluation"}, {"step", 1}, {"tokens", 8}}), (Kinds{false, true, false}));
  EXPECT_EQ(kinds_of({{"kind", "checkpoint"}, {"step", 1}}), (Kinds{false, false, true}));
  EXPECT_EQ(kinds_of({{"kind", "of a later version"}, {"step", 1}, {"tokens", 8}}), (Kinds{false, false, false}));
  EXPECT_EQ(kinds_of({{"step", 1}, {"tokens", 8}}), (Kinds{true, false, false}));
  EXPECT_EQ(kinds_of({{"step", 1}, {"exact", 40.0}}), (Kinds{false, true, false}));
  EXPECT_EQ(kinds_of({{"step", 1}, {"checkpoint", "step-000001.h5"}}), (Kinds{false, false, true}));
}

TEST(MetricsFile, IsCutBackToAStep) {
  const tests::TemporaryDirectory directory;
  const auto path = directory / "metrics.jsonl";
  cut_metrics(path, 3, false);  // there is no file
  EXPECT_FALSE(std::filesystem::exists(path));
  tests::write_file(path,
                    "{\"step\":3,\"tokens\":1}\n{\"step\":3,\"checkpoint\":\"x\"}\n{\"step\":3,\"f1\":50}\n"
                    "{\"step\":4,\"tokens\":1}\n{\"step\":5,\"lo");
  cut_metrics(path, 3, false);
  EXPECT_EQ(tests::read_file(path),
            "{\"step\":3,\"tokens\":1}\n{\"step\":3,\"checkpoint\":\"x\"}\n{\"step\":3,\"f1\":50}\n");
  cut_metrics(path, 3, true);  // the evaluation after step 3 is reported again, but the step is not
  EXPECT_EQ(tests::read_file(path), "{\"step\":3,\"tokens\":1}\n{\"step\":3,\"checkpoint\":\"x\"}\n");
  cut_metrics(path, 0, false);
  EXPECT_EQ(tests::read_file(path), "");
}

TEST(MetricsFile, NamesTheFileOnAFullDisk) {
  MetricsFile file("/dev/full");
  file.step(report);
  EXPECT_EQ(file.missing(), "cannot write /dev/full: No space left on device; 1 record is missing there");
}

}  // namespace
}  // namespace mylos::train
