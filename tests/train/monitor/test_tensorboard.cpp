// The event file is read by a decoder that has only the CRC in common with the encoder.

#include "core/base/crc32c.hpp"
#include "tests/support/temporary.hpp"
#include "tests/support/tensorboard.hpp"
#include "train/monitor/run_record.hpp"
#include "train/monitor/tensorboard.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <cstring>
#include <map>

namespace mylos::train {
namespace {

using nlohmann::json;
using testing::Contains;
using testing::ElementsAre;
using testing::Key;
using testing::MatchesRegex;

/// Reads values from the front of a text. Throws std::out_of_range if it is too short.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  bool empty() const { return text_.empty(); }

  std::string_view bytes(std::size_t count) {
    if (count > text_.size()) throw std::out_of_range("the text ends inside a value");
    const std::string_view front = text_.substr(0, count);
    text_.remove_prefix(count);
    return front;
  }
  template <class T>
  T plain() {
    T value;
    std::memcpy(&value, bytes(sizeof(T)).data(), sizeof(T));
    return value;
  }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes(1)[0]);
      value |= std::uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return value;
    }
  }
  std::string_view delimited() { return bytes(varint()); }

 private:
  std::string_view text_;
};

struct Event {
  double wall_time = 0.0;
  std::uint64_t step = 0;
  std::string version;
  std::map<std::string, float> scalars;
  std::string session;
};

std::pair<std::string, float> decode_value(std::string_view text) {
  Reader reader(text);
  std::pair<std::string, float> value;
  while (!reader.empty()) {
    const std::uint64_t key = reader.varint();
    if (key == ((1 << 3) | 2)) {
      value.first = reader.delimited();
    } else if (key == ((2 << 3) | 5)) {
      value.second = reader.plain<float>();
    } else {
      ADD_FAILURE() << "Summary.Value has key " << key;
    }
  }
  return value;
}

Event decode_event(std::string_view text) {
  Reader reader(text);
  Event event;
  while (!reader.empty()) {
    const std::uint64_t key = reader.varint();
    if (key == ((1 << 3) | 1)) {
      event.wall_time = reader.plain<double>();
    } else if (key == (2 << 3)) {
      event.step = reader.varint();
    } else if (key == ((3 << 3) | 2)) {
      event.version = reader.delimited();
    } else if (key == ((7 << 3) | 2)) {
      event.session = reader.delimited();
    } else if (key == ((5 << 3) | 2)) {
      Reader summary(reader.delimited());
      while (!summary.empty()) {
        EXPECT_EQ(summary.varint(), (1u << 3) | 2u);
        event.scalars.insert(decode_value(summary.delimited()));
      }
    } else {
      ADD_FAILURE() << "Event has key " << key;
    }
  }
  return event;
}

std::uint32_t masked(std::string_view text) {
  const std::uint32_t crc = crc32c(std::as_bytes(std::span(text.data(), text.size())));
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u;
}

std::vector<Event> read_events(const std::filesystem::path& path) {
  const std::string text = tests::read_file(path);
  Reader reader(text);
  std::vector<Event> events;
  while (!reader.empty()) {
    const std::string_view length = reader.bytes(8);
    EXPECT_EQ(reader.plain<std::uint32_t>(), masked(length));
    const std::string_view event = reader.bytes(Reader(length).plain<std::uint64_t>());
    EXPECT_EQ(reader.plain<std::uint32_t>(), masked(event));
    events.push_back(decode_event(event));
  }
  return events;
}

StepReport step_report(std::size_t step, double loss) {
  return {.step = step,
          .epoch = 0.5,
          .loss = loss,
          .gradient_norm = 2.5,
          .learning_rate = 0.25,
          .sequences = 8,
          .tokens = 3000,
          .seconds = 1.5,
          .memory = 4096};
}

class TensorBoardFile : public testing::Test {
 protected:
  tests::TemporaryDirectory directory_;
  std::filesystem::path path_ = directory_ / "events";
  double time_ = 1000.5;
  TensorBoard board_{path_, [this] { return time_++; }};

  /// Returns train/epoch_loss by step.
  std::map<std::uint64_t, float> epoch_losses() const {
    std::map<std::uint64_t, float> losses;
    for (const Event& event : read_events(path_)) {
      if (event.scalars.contains("train/epoch_loss")) losses[event.step] = event.scalars.at("train/epoch_loss");
    }
    return losses;
  }
};

TEST_F(TensorBoardFile, BeginsWithTheVersion) {
  const auto events = read_events(path_);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].version, "brain.Event:2");
  EXPECT_EQ(events[0].wall_time, 1000.5);
}

TEST_F(TensorBoardFile, HoldsAStepAsItHappens) {
  board_.start({.steps = 600, .steps_per_epoch = 1000});
  board_.step(step_report(300, 1.5));
  const auto events = read_events(path_);
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[2].step, 300u);
  EXPECT_EQ(events[2].wall_time, 1002.5);
  EXPECT_THAT(events[2].scalars,
              ElementsAre(std::pair("perf/memory", 4096.0f), std::pair("perf/tokens_per_second", 2000.0f),
                          std::pair("train/gradient_norm", 2.5f), std::pair("train/learning_rate", 0.25f),
                          std::pair("train/loss", 1.5f)));
}

TEST_F(TensorBoardFile, NamesTheWorkThatTheRunCounts) {
  const WorkKind images = {.name = "images", .singular = "image", .rows = 50, .samples = "groups", .sample = "group"};
  tests::write_file(directory_ / "metrics.jsonl",
                    R"({"kind": "step", "step": 1, "images": 90, "loss": 1.0, "seconds": 1.5})"
                    "\n");
  board_.start({.steps = 6, .first_step = 1, .steps_per_epoch = 9, .evaluation_due = true, .work = images});
  EXPECT_EQ(read_events(path_).back().scalars.at("perf/images_per_second"), 60.0f) << "the step that is written again";
  board_.step(step_report(2, 1.5));
  const auto scalars = read_events(path_).back().scalars;
  EXPECT_EQ(scalars.at("perf/images_per_second"), 40.0f);
  EXPECT_FALSE(scalars.contains("perf/tokens_per_second"));
}

TEST_F(TensorBoardFile, HoldsTheLossScaleWhereOneAdapts) {
  train::StepReport report = step_report(1, 1.5);
  report.loss_scale = 32768.0;
  board_.step(report);
  EXPECT_EQ(read_events(path_)[1].scalars.at("train/loss_scale"), 32768.0f);
}

TEST_F(TensorBoardFile, HoldsEvaluationsUnderTheirNames) {
  board_.evaluation({.step = 7, .metrics = {{"validation_loss", 0.5}, {"exact", 40.0}, {"f1", 50.0}}});
  const auto events = read_events(path_);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[1].step, 7u);
  EXPECT_THAT(events[1].scalars,
              ElementsAre(std::pair("eval/exact", 40.0f), std::pair("eval/f1", 50.0f), std::pair("eval/loss", 0.5f)));
}

TEST_F(TensorBoardFile, AveragesTheLossesOfEachEpochAndOfTheLastPart) {
  board_.start({.steps = 3, .steps_per_epoch = 2});
  board_.step(step_report(1, 1.0));
  board_.step(step_report(2, 2.0));
  board_.step(step_report(3, 8.0));
  board_.close(true);
  EXPECT_THAT(epoch_losses(), ElementsAre(std::pair(2u, 1.5f), std::pair(3u, 8.0f)));
}

TEST_F(TensorBoardFile, SaysNoEpochLossWhereASignalEndedTheRunInsideAnEpoch) {
  board_.start({.steps = 4, .steps_per_epoch = 2});
  for (const std::size_t step : {1, 2, 3}) board_.step(step_report(step, 1.0));
  board_.close(false);
  EXPECT_THAT(epoch_losses(), ElementsAre(std::pair(2u, 1.0f)));
}

TEST_F(TensorBoardFile, AveragesTheLossesOfAllStartsOfAnEpoch) {
  tests::write_file(directory_ / "metrics.jsonl", R"({"step": 4, "tokens": 9, "loss": 100.0})"
                                                  "\n"
                                                  R"({"step": 5, "tokens": 9, "loss": 1.0})"
                                                  "\n"
                                                  R"({"step": 5, "validation_loss": 7.0})"
                                                  "\n"
                                                  R"({"step": 6, "tokens": 9, "loss": 2.0})"
                                                  "\n");
  board_.start({.steps = 12, .first_step = 6, .steps_per_epoch = 4});
  board_.step(step_report(7, 3.0));
  board_.step(step_report(8, 6.0));
  EXPECT_THAT(epoch_losses(), ElementsAre(std::pair(8u, 3.0f)));
}

TEST_F(TensorBoardFile, SaysNoLossOfAnEpochWhoseBeginIsNotKnown) {
  board_.start({.steps = 8, .first_step = 2, .steps_per_epoch = 4});
  for (const std::size_t step : {3, 4, 5, 6, 7, 8}) board_.step(step_report(step, 1.0));
  EXPECT_THAT(epoch_losses(), ElementsAre(std::pair(8u, 1.0f)));
}

TEST_F(TensorBoardFile, SaysWhereAStartBeginsSoThatLaterStepsOfOtherFilesAreVoid) {
  board_.start({.steps = 600, .steps_per_epoch = 1000});
  board_.start({.steps = 600, .first_step = 40, .steps_per_epoch = 1000});
  const auto events = read_events(path_);
  ASSERT_EQ(events.size(), 3u);
  for (const std::size_t i : {1, 2}) {
    EXPECT_EQ(events[i].step, i == 1 ? 1u : 41u);
    EXPECT_EQ(events[i].session, std::string("\x08\x01"));  // status: START
  }
}

// An evaluation becomes invalid only together with its whole step.
TEST_F(TensorBoardFile, WritesTheStepAgainWhoseEvaluationIsRepeated) {
  tests::write_file(directory_ / "metrics.jsonl",
                    R"({"step": 3, "tokens": 3000, "loss": 1.0})"
                    "\n"
                    R"({"step": 4, "tokens": 3000, "loss": 1.5, "gradient_norm": 2.5, "learning_rate": 0.25,)"
                    R"( "seconds": 1.5, "memory": 4096, "loss_scale": 2.0})"
                    "\n");
  board_.start({.steps = 12, .first_step = 4, .steps_per_epoch = 2, .evaluation_due = true});
  const auto events = read_events(path_);
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[1].session, std::string("\x08\x01"));
  EXPECT_EQ(events[1].step, 4u);
  EXPECT_EQ(events[2].step, 4u);
  EXPECT_THAT(events[2].scalars,
              ElementsAre(std::pair("perf/memory", 4096.0f), std::pair("perf/tokens_per_second", 2000.0f),
                          std::pair("train/gradient_norm", 2.5f), std::pair("train/learning_rate", 0.25f),
                          std::pair("train/loss", 1.5f), std::pair("train/loss_scale", 2.0f)));
  EXPECT_THAT(epoch_losses(), ElementsAre(std::pair(4u, 1.25f)));
  board_.step(step_report(5, 1.0));
  board_.step(step_report(6, 2.0));
  EXPECT_THAT(epoch_losses(), ElementsAre(std::pair(4u, 1.25f), std::pair(6u, 1.5f)));
}

TEST_F(TensorBoardFile, SaysAFinishedEpochOnce) {
  board_.start({.steps = 1, .steps_per_epoch = 1});
  board_.step(step_report(1, 1.0));
  board_.close(true);
  EXPECT_EQ(read_events(path_).size(), 4u);
}

TEST_F(TensorBoardFile, HoldsGpusAsTheirNodesWroteThem) {
  const auto write = [this](const std::string& text) { tests::write_file(directory_ / "gpus/n1.jsonl", text); };
  const auto line = [](double utilization, double energy) {
    return to_line({1.0, 1, {{.index = 2, .utilization = utilization, .memory = 4096.0, .energy = energy}}});
  };
  const std::string before = line(1.0, 0.0) + line(1.0, 3.6e6);  // from an earlier start
  write(before);
  board_.start({.steps = 600, .first_step = 6, .steps_per_epoch = 1000});
  write(before + line(10.0, 0.0) + line(30.0, 1.8e6));
  board_.step(step_report(7, 1.5));
  EXPECT_THAT(read_events(path_).back().scalars,
              ElementsAre(std::pair("gpu/n1/2/memory", 4096.0f), std::pair("gpu/n1/2/utilization", 20.0f)));
  write(before + line(10.0, 0.0) + line(30.0, 1.8e6) + line(50.0, 3.6e6));
  board_.step(step_report(8, 1.5));
  EXPECT_THAT(read_events(path_).back().scalars, Contains(Key("train/loss"))) << "too soon for GPUs";
  EXPECT_EQ(board_.close(true), 7.2e6);
  const auto events = read_events(path_);
  EXPECT_THAT(events.back().scalars, ElementsAre(std::pair("gpu/energy_kwh", 2.0f)));
  EXPECT_EQ(events.back().step, 8u);
  EXPECT_EQ(events[events.size() - 2].scalars.at("gpu/n1/2/utilization"), 50.0f);
}

TEST_F(TensorBoardFile, HoldsNodesAsTheyWroteThem) {
  const auto line = [](double cpu) {
    return to_line({1.0,
                    1,
                    {{.index = 0, .memory_utilization = 40.0}},
                    NodeReading{.cpu = cpu, .memory = 4096.0, .power = 300.0}});
  };
  board_.start({.steps = 600, .steps_per_epoch = 1000});
  tests::write_file(directory_ / "gpus/n1.jsonl", line(10.0) + line(30.0));
  board_.step(step_report(1, 1.5));
  EXPECT_THAT(read_events(path_).back().scalars,
              ElementsAre(std::pair("gpu/n1/0/memory_utilization", 40.0f), std::pair("node/n1/cpu", 20.0f),
                          std::pair("node/n1/memory", 4096.0f), std::pair("node/n1/power", 300.0f)));
}

TEST_F(TensorBoardFile, SaysNothingOfGpusWhereThereAreNone) {
  board_.start({.steps = 600, .steps_per_epoch = 1000});
  board_.step(step_report(1, 1.5));
  EXPECT_EQ(board_.close(false), std::nullopt);
  EXPECT_EQ(read_events(path_).size(), 3u);
}

TEST(Hyperparameters, AreOptionsAndWhatWasResolved) {
  const auto [all, metrics] = hyperparameters_of(nlohmann::ordered_json::parse(R"({
      "seed": 42, "mode": null, "learning-rate": 0.5, "deterministic": false, "precision": "half", "order": [1],
      "program": {"version": "0"}, "steps": 9, "resolved": {"mode": "sharded", "steps": 10, "gemm": {}}})"));
  std::vector<std::string> names;
  for (const Hyperparameter& parameter : all) names.push_back(parameter.name);
  EXPECT_THAT(names, ElementsAre("seed", "learning-rate", "deterministic", "precision", "mode", "steps"));
  EXPECT_EQ(all.back().value, 10);
  EXPECT_THAT(metrics, ElementsAre("eval/f1", "eval/exact", "eval/loss", "train/epoch_loss", "perf/tokens_per_second"))
      << "a version that listed no metrics";
}

TEST(Hyperparameters, HaveTheMetricsAndTheWorkThatTheRunNames) {
  const std::vector<MetricKind> kinds = {{"validation_loss", "Validation loss", "", false},
                                         {"perplexity", "Perplexity", "", false},
                                         {"accuracy", "Accuracy", "%"}};
  nlohmann::ordered_json run = {{"seed", 42}, {"resolved", {{work_key, "images"}, {metrics_key, to_json(kinds)}}}};
  EXPECT_THAT(hyperparameters_of(run).metrics, ElementsAre("eval/accuracy", "eval/perplexity", "eval/loss",
                                                           "train/epoch_loss", "perf/images_per_second"));
  run["resolved"].erase(metrics_key);
  EXPECT_THAT(hyperparameters_of(run).metrics, ElementsAre("train/epoch_loss", "perf/images_per_second"))
      << "nothing is evaluated";
}

/// Reads the files of a run that was started twice with TensorBoard itself.
TEST(TensorBoard, IsReadByTensorBoard) {
  if (const std::string obstacle = tests::tensorboard_obstacle(); !obstacle.empty()) GTEST_SKIP() << obstacle;
  const tests::TemporaryDirectory directory;
  const std::filesystem::path run = directory / "run", samples = run / "gpus" / "node.one.jsonl";
  const Hyperparameters reported = {{{"adam-beta1", true}, {"learning-rate", 0.25}, {"mode", "sharded"}},
                                    {"eval/f1", "eval/loss"}};
  double time = 1000.0;
  const EventFile::Clock clock = [&time] { return time++; };
  const auto sample = [](double energy) {
    return to_line({1.0, 1, {{.index = 0, .utilization = 50.0, .memory = 1e9, .power = 300.0, .energy = energy}}});
  };
  tests::write_file(samples, "");
  {
    TensorBoard first(run / "events.out.tfevents.1.host.1", clock, reported);
    first.start({.steps = 4, .steps_per_epoch = 2});
    tests::write_file(samples, sample(0.0) + sample(3.6e6));
    for (std::size_t step = 1; step <= 3; ++step) first.step(step_report(step, 10.0));
    first.evaluation({.step = 3, .metrics = {{"validation_loss", 9.0}, {"f1", 10.0}}});
  }
  TensorBoard second(run / "events.out.tfevents.2.host.2", clock, reported);
  second.start({.steps = 4, .first_step = 2, .steps_per_epoch = 2});
  for (std::size_t step = 3; step <= 4; ++step) second.step(step_report(step, 1.0));
  second.evaluation({.step = 4, .metrics = {{"validation_loss", 0.5}, {"f1", 80.0}}});
  tests::write_file(samples, sample(0.0) + sample(3.6e6) + sample(0.0) + sample(1.8e6));
  second.close(true);

  const json read = json::parse(tests::tensorboard_reads(directory.path()));
  const json& scalars = read["scalars"]["run"];
  EXPECT_EQ(scalars["train/loss"], json::parse("[[1, 10.0], [2, 10.0], [3, 1.0], [4, 1.0]]")) << "no step twice";
  EXPECT_EQ(scalars["eval/f1"], json::parse("[[4, 80.0]]"));
  EXPECT_EQ(scalars["gpu/node.one/0/power"], json::parse("[[1, 300.0], [4, 300.0]]"));
  EXPECT_EQ(scalars["gpu/node.one/0/utilization"][0][1], 50.0);
  EXPECT_EQ(scalars["gpu/energy_kwh"], json::parse("[[4, 1.5]]"));
  EXPECT_EQ(read["hyperparameters"], json({"learning-rate", "mode", "adam-beta1"})) << "the first ones first";
  const json& session = read["sessions"]["run"];
  EXPECT_EQ(session["status"], "STATUS_SUCCESS");
  EXPECT_EQ(session["hyperparameters"], json({{"learning-rate", 0.25}, {"mode", "sharded"}, {"adam-beta1", true}}));
  EXPECT_EQ(session["metrics"]["eval/f1"], 80.0);
  EXPECT_EQ(session["metrics"]["eval/loss"], 0.5);
}

TEST(TensorBoard, NamesTheFileForTimeHostAndProcess) {
  const tests::TemporaryDirectory directory;
  const TensorBoard board(directory.path());
  const auto entry = *std::filesystem::directory_iterator(directory.path());
  const std::string name = entry.path().filename();
  EXPECT_THAT(name, MatchesRegex("events\\.out\\.tfevents\\.[0-9]+\\..+\\." + std::to_string(::getpid())));
}

TEST(TensorBoard, NamesTheFileOnAFullDisk) {
  TensorBoard board("/dev/full", [] { return 0.0; });
  EXPECT_EQ(board.missing(), "cannot write /dev/full: No space left on device; 1 record is missing there");
}

}  // namespace
}  // namespace mylos::train
