// A task that receives its data from another task, as on all ranks but the first.

#include "core/base/value_bytes.hpp"
#include "families/bert/bert_body.hpp"
#include "families/llama/llama_body.hpp"
#include "tasks/interface/task.hpp"
#include "tasks/language_modeling/language_config.hpp"
#include "tasks/question_answering/squad_config.hpp"
#include "tests/support/arrays.hpp"
#include "tests/support/temporary.hpp"
#include "tests/tasks/recorded_runs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <any>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

namespace mylos::tests {
namespace {

using Arrays = std::map<std::string, Values>;

/// Returns a batch's arrays by name.
Arrays arrays_of(const Batch& batch) {
  Arrays arrays = {{"starts", host_values(batch.sample_starts())}, {"ids", host_values(batch.sample_ids())}};
  for (const char* name :
       {nn::names::tokens, nn::names::segments, nn::names::start_labels, nn::names::end_labels, nn::names::labels}) {
    if (batch.has(name)) arrays[name] = host_values(batch.integers(name));
  }
  return arrays;
}

/// Returns the samples of the first steps of training.
std::vector<Arrays> training_of(const tasks::Task& task) {
  std::vector<Arrays> batches;
  Batch batch;
  for (std::size_t step = 0; step < std::min<std::size_t>(task.steps_per_epoch(), 5); ++step) {
    const std::vector<std::size_t> samples = task.global_batch(step);
    std::vector<std::uint32_t> ids(samples.size());
    std::iota(ids.begin(), ids.end(), 0u);
    task.assemble(step, samples, ids, batch);
    batches.push_back(arrays_of(batch));
    batches.back()["weight"] = {task.weight(samples)};
  }
  return batches;
}

std::vector<Arrays> evaluation_of(const tasks::Task& task) {
  std::vector<Arrays> batches;
  Batch batch;
  for (std::size_t index = 0; index < task.evaluation()->batches(); ++index) {
    task.evaluation()->assemble(index, batch);
    batches.push_back(arrays_of(batch));
  }
  return batches;
}

void expect_same_data(const tasks::Task& task, const tasks::Task& expected) {
  const auto sums = task.data_checksums(), expected_sums = expected.data_checksums();
  ASSERT_EQ(sums.size(), expected_sums.size());
  for (std::size_t i = 0; i < sums.size(); ++i) EXPECT_EQ(sums[i].checksum, expected_sums[i].checksum) << i;
  EXPECT_EQ(task.steps_per_epoch(), expected.steps_per_epoch());
  EXPECT_EQ(task.train_text(), expected.train_text());
  EXPECT_EQ(task.dev_text(), expected.dev_text());
  EXPECT_EQ(task.resolved(), expected.resolved());
  EXPECT_TRUE(training_of(task) == training_of(expected));
  EXPECT_TRUE(evaluation_of(task) == evaluation_of(expected));
}

class ReceivedData : public testing::TestWithParam<RecordedRun (*)()> {
 protected:
  void SetUp() override {
    if (!recorded_.obstacle.empty()) GTEST_SKIP() << recorded_.obstacle;
  }

  /// Returns the task of `run`, without its data.
  std::unique_ptr<tasks::Task> without_data(const tasks::RunConfig& run) {
    return recorded_.kind.make(FileReader(), run, [this](const std::string& line) { notices_.push_back(line); });
  }
  /// Returns the run with data files that do not exist.
  tasks::RunConfig without_files() const {
    tasks::RunConfig run = recorded_.run;
    run.task.train = "/no/such/train.json";
    run.task.dev = "/no/such/dev.json";
    return run;
  }

  RecordedRun recorded_ = GetParam()();
  std::vector<std::string> notices_;
};

TEST_P(ReceivedData, IsThatOfTheFilesWhichAreNotOpened) {
  const auto expected = recorded_.task();
  ByteWriter bytes;
  expected->write_data(bytes);
  const auto task = without_data(without_files());
  const std::string sent = bytes.take();
  ByteReader reader(sent);
  task->receive_data(reader);
  EXPECT_TRUE(reader.at_end());
  expect_same_data(*task, *expected);
}

TEST_P(ReceivedData, IsReadLaterByTheRankThatHasTheFiles) {
  const auto task = without_data(recorded_.run);
  task->read_data();
  expect_same_data(*task, *recorded_.task());
}

/// Also without evaluation data, without an order, and with a limit.
TEST_P(ReceivedData, HasThePartsOfTheConfiguration) {
  tasks::RunConfig run = recorded_.run;
  run.task.dev.clear();
  run.task.train_limit = 3;
  if (auto* squad = std::any_cast<tasks::SquadConfig>(&run.settings)) squad->order.clear();
  if (auto* language = std::any_cast<tasks::LanguageConfig>(&run.settings)) language->order.clear();
  const auto expected = make_with_data(recorded_.kind, run, [](const std::string&) {});
  ByteWriter bytes;
  expected->write_data(bytes);
  const std::string sent = bytes.take();
  run.task.train = "/no/such/train.json";
  const auto task = without_data(run);
  ByteReader reader(sent);
  task->receive_data(reader);
  EXPECT_TRUE(reader.at_end());
  EXPECT_EQ(task->evaluation(), nullptr);
  EXPECT_EQ(task->train_text(), expected->train_text());
  EXPECT_TRUE(training_of(*task) == training_of(*expected));
}

TEST_P(ReceivedData, MissingFilesAreErrorsOfReading) {
  const auto task = without_data(without_files());
  EXPECT_THAT(error_of([&] { task->read_data(); }), ::testing::HasSubstr("/no/such/train.json"));
}

INSTANTIATE_TEST_SUITE_P(Families, ReceivedData, testing::Values(recorded_examples, recorded_chess),
                         [](const auto& info) { return info.param().name; });

}  // namespace
}  // namespace mylos::tests
