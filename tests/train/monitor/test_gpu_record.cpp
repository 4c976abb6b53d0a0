#include "train/monitor/gpu_record.hpp"

#include "tests/support/temporary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mylos::train {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

GpuReading reading(std::size_t index, double energy) {
  return {.index = index,
          .name = "NVIDIA A100",
          .utilization = 93.0,
          .memory_utilization = 41.0,
          .memory = 4e9,
          .memory_total = 4e10,
          .power = 250.5,
          .energy = energy};
}

class GpuRecord : public testing::Test {
 protected:
  void write(const std::string& node, const std::string& text) const {
    tests::write_file(run_ / "gpus" / (node + ".jsonl"), text);
  }
  tests::TemporaryDirectory directory_;
  std::filesystem::path run_ = directory_.path();
};

TEST_F(GpuRecord, ALineIsReadAsItWasWritten) {
  write("n1", to_line({1700000000.25, 7, {reading(0, 10.0), reading(1, 20.0)}}));
  const auto all = read_gpu_samples(run_);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[1].node, "n1");
  EXPECT_EQ(all[1].index, 1u);
  ASSERT_EQ(all[1].points.size(), 1u);
  const GpuSeries::Point& point = all[1].points[0];
  EXPECT_EQ(point.time, 1700000000.25);
  EXPECT_EQ(point.step, 7u);
  EXPECT_EQ(point.reading.name, "NVIDIA A100");
  EXPECT_EQ(point.reading.utilization, 93.0);
  EXPECT_EQ(point.reading.memory_utilization, 41.0);
  EXPECT_EQ(point.reading.memory, 4e9);
  EXPECT_EQ(point.reading.memory_total, 4e10);
  EXPECT_EQ(point.reading.power, 250.5);
  EXPECT_EQ(point.reading.energy, 20.0);
}

TEST_F(GpuRecord, WhatADriverDoesNotTellIsAbsent) {
  const std::string line = to_line({1.5, 2, {{.index = 0, .name = "MIG 1g.10gb", .memory = 5.0}}});
  EXPECT_EQ(line, R"({"time":1.5,"step":2,"gpus":[{"index":0,"name":"MIG 1g.10gb","memory":5.0}]})"
                  "\n");
  write("n1", line + R"({"time": 2, "step": 3, "gpus": [{"index": 0, "utilization": null, "energy": "7"}]})" + "\n");
  const auto all = read_gpu_samples(run_);
  ASSERT_EQ(all.size(), 1u);
  ASSERT_EQ(all[0].points.size(), 2u);
  EXPECT_EQ(all[0].points[0].reading.utilization, std::nullopt);
  EXPECT_EQ(all[0].points[1].reading.utilization, std::nullopt);
  EXPECT_EQ(all[0].points[1].reading.energy, std::nullopt);
  EXPECT_EQ(all[0].energy.joules(), 0.0);
}

TEST_F(GpuRecord, ANodesLineIsReadAsItWasWritten) {
  const std::string line = to_line({1.5, 2, {}, NodeReading{.cpu = 43.5, .memory = 5.0, .memory_total = 9.0}});
  EXPECT_EQ(line, R"({"time":1.5,"step":2,"node":{"cpu":43.5,"memory":5.0,"memory_total":9.0},"gpus":[]})"
                  "\n");
  write("n1", line + to_line({2.5, 3, {}, NodeReading{.power = 231.5, .power_source = "RAPL"}}) +
                  R"({"time": 3, "gpus": []})" + "\n" + R"({"time": 4, "node": 7, "gpus": []})" + "\n" +
                  R"({"time": 5, "node": {"cpu": "x", "power_source": 1}, "gpus": []})" + "\n");
  std::vector<std::optional<NodeReading>> nodes;
  GpuRecordReader(run_).read([&](const std::string&, const GpuSample& sample) { nodes.push_back(sample.node); });
  ASSERT_EQ(nodes.size(), 5u);
  EXPECT_EQ(nodes[0]->cpu, 43.5);
  EXPECT_EQ(nodes[0]->memory, 5.0);
  EXPECT_EQ(nodes[0]->memory_total, 9.0);
  EXPECT_EQ(nodes[0]->power, std::nullopt);
  EXPECT_EQ(nodes[1]->power, 231.5);
  EXPECT_EQ(nodes[1]->power_source, "RAPL");
  EXPECT_FALSE(nodes[2] || nodes[3]) << "as earlier versions wrote it";
  EXPECT_EQ(nodes[4]->cpu, std::nullopt);
  EXPECT_EQ(nodes[4]->power_source, "");
  EXPECT_THAT(read_gpu_samples(run_), IsEmpty());
}

TEST_F(GpuRecord, EnergyIsTheSumOverStarts) {
  std::string text;
  for (const double energy : {0.0, 100.0, 300.0, 0.0, 50.0, 5.0, 7.0}) text += to_line({1.0, 1, {reading(0, energy)}});
  write("n1", text);
  EXPECT_EQ(read_gpu_samples(run_).at(0).energy.joules(), 300.0 + 50.0 + 7.0);
  EXPECT_EQ(kilowatt_hours(7.2e6), 2.0);
}

TEST_F(GpuRecord, NodesAndGpusAreInOrder) {
  write("n2", to_line({1.0, 1, {reading(0, 0.0)}}));
  write("n1", to_line({1.0, 1, {reading(1, 0.0)}}) + to_line({2.0, 1, {reading(0, 0.0)}}));
  std::vector<std::string> positions;
  for (const GpuSeries& gpu : read_gpu_samples(run_)) positions.push_back(gpu.node + "/" + std::to_string(gpu.index));
  EXPECT_THAT(positions, ElementsAre("n1/0", "n1/1", "n2/0"));
}

TEST_F(GpuRecord, WhatIsNoWholeLineIsPassedOver) {
  const std::string whole = to_line({1.0, 1, {reading(0, 1.0)}});
  write("n1", whole.substr(0, 30) + "\n" + whole + "[]\n{}\n\n{\"time\": 1}\n" + R"({"time": 1, "gpus": [3, {}]})" +
                  "\n" + whole + whole.substr(0, whole.size() - 1));
  const auto all = read_gpu_samples(run_);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].points.size(), 2u);
}

TEST_F(GpuRecord, OfARunWithoutGpusThereIsNone) {
  EXPECT_THAT(read_gpu_samples(run_), IsEmpty());
  EXPECT_THAT(read_gpu_samples(run_ / "nothing"), IsEmpty());
  tests::write_file(run_ / "gpus" / "notes.txt", to_line({1.0, 1, {reading(0, 1.0)}}));
  std::filesystem::create_directories(run_ / "gpus" / "directory.jsonl");
  EXPECT_THAT(read_gpu_samples(run_), IsEmpty());
}

TEST_F(GpuRecord, ARunThatGrowsIsFollowed) {
  std::vector<std::string> taken;
  const GpuRecordReader::Take take = [&](const std::string& node, const GpuSample& sample) {
    taken.push_back(node + " " + std::to_string(sample.step));
  };
  GpuRecordReader reader(run_);
  reader.read(take);
  const std::string first = to_line({1.0, 1, {}}), second = to_line({2.0, 2, {}});
  write("n1", first + second.substr(0, 9));
  reader.read(take);
  reader.read(take);
  EXPECT_THAT(taken, ElementsAre("n1 1"));
  write("n1", first + second);
  write("n2", first);
  reader.read(take);
  EXPECT_THAT(taken, ElementsAre("n1 1", "n1 2", "n2 1"));
  EXPECT_FALSE(reader.begins_anew());
}

TEST_F(GpuRecord, AnotherRunInThePlaceOfOneIsReadFromTheBeginning) {
  std::size_t taken = 0;
  const GpuRecordReader::Take take = [&](const std::string&, const GpuSample&) { ++taken; };
  GpuRecordReader reader(run_);
  const std::string line = to_line({1.0, 1, {}});
  write("n1", line + line);
  write("n2", line);
  reader.read(take);
  write("n1", line);
  taken = 0;
  EXPECT_TRUE(reader.begins_anew());
  reader.read(take);
  EXPECT_EQ(taken, 2u);
}

std::string line(double time, std::optional<double> utilization, std::optional<double> energy) {
  return to_line({time, 1, {{.index = 0, .utilization = utilization, .energy = energy}}});
}

class GpuFollowerTest : public testing::Test {
 protected:
  void write(const std::string& text) const { tests::write_file(run_.path() / "gpus" / "n1.jsonl", text); }
  const GpuFollower::Gpu& gpu() const { return follower_.gpus().at({"n1", 0}); }
  std::optional<double> recent_utilization() const {
    const Statistics& recent = gpu().recent.front();
    return recent.empty() ? std::nullopt : std::optional(recent.mean());
  }

  tests::TemporaryDirectory run_;
  GpuFollower follower_{run_.path()};
};

TEST_F(GpuFollowerTest, KeepsTheLastReadingAndTheMeanOfTheNewOnes) {
  follower_.update();
  EXPECT_TRUE(follower_.gpus().empty());
  EXPECT_EQ(follower_.joules(), std::nullopt);
  const std::string first = line(1.0, 10.0, 0.0) + line(2.0, 20.0, 50.0);
  write(first);
  follower_.update();
  EXPECT_EQ(gpu().last.utilization, 20.0);
  EXPECT_EQ(gpu().time, 2.0);
  EXPECT_EQ(recent_utilization(), 15.0);
  EXPECT_TRUE(gpu().recent.back().empty()) << "the power";
  EXPECT_EQ(follower_.joules(), 50.0);
  write(first + line(3.0, 90.0, 70.0) + line(4.0, std::nullopt, 80.0));
  follower_.update();
  EXPECT_EQ(recent_utilization(), 90.0);
  EXPECT_EQ(gpu().last.utilization, std::nullopt);
  EXPECT_EQ(follower_.joules(), 80.0);
  follower_.update();
  EXPECT_EQ(recent_utilization(), std::nullopt) << "nothing new";
  EXPECT_EQ(gpu().whole.front().mean(), 40.0);
  EXPECT_EQ(gpu().whole.front().least(), 10.0);
  EXPECT_EQ(gpu().whole.front().peak(), 90.0);
  EXPECT_EQ(gpu().time, 4.0);
}

TEST_F(GpuFollowerTest, FollowsNodes) {
  write(to_line({1.0, 1, {}, NodeReading{.cpu = 10.0, .power = 300.0, .power_source = "RAPL"}}) +
        line(2.0, 20.0, std::nullopt) + to_line({3.0, 1, {}, NodeReading{.cpu = 30.0}}));
  follower_.update();
  ASSERT_EQ(follower_.nodes().size(), 1u);
  const Followed<NodeReading>& node = follower_.nodes().at("n1");
  EXPECT_EQ(node.time, 3.0);
  EXPECT_EQ(node.last.cpu, 30.0);
  EXPECT_EQ(node.recent.front().mean(), 20.0);
  EXPECT_EQ(node.whole.back().peak(), 300.0);
  follower_.update();
  EXPECT_TRUE(follower_.nodes().at("n1").recent.front().empty());
  EXPECT_EQ(follower_.nodes().at("n1").whole.front().peak(), 30.0);
}

TEST_F(GpuFollowerTest, ForgetsARunThatAnotherReplaced) {
  write(line(1.0, 10.0, 0.0) + line(2.0, 20.0, 50.0));
  follower_.update();
  write(line(9.0, 30.0, 7.0));
  follower_.update();
  EXPECT_EQ(follower_.joules(), 7.0);
  EXPECT_EQ(recent_utilization(), 30.0);
}

TEST_F(GpuFollowerTest, EnergyThatNoGpuTellsIsUnknown) {
  write(line(1.0, 10.0, std::nullopt));
  follower_.update();
  EXPECT_EQ(follower_.joules(), std::nullopt);
}

}  // namespace
}  // namespace mylos::train
