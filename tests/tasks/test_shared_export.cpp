#include "tasks/interface/pretrained_export.hpp"
#include "tests/small_models/text_task.hpp"
#include "tests/support/rank_outcomes.hpp"
#include "tests/support/shared_directory.hpp"
#include "train/engine/model_export.hpp"
#include "train/engine/trainer.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

/// Exports of several files, which several ranks write side by side.
namespace mylos::tasks {
namespace {

namespace fs = std::filesystem;
using parallel::ModeKind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

parallel::Communicator& world() { return tests::launch().world(); }

/// An export that fails in the middle.
class FailingExport final : public train::ModelExport {
 public:
  explicit FailingExport(std::unique_ptr<ModelExport> target) : target_(std::move(target)) {}

  void write(const ParameterTensor&, std::size_t, std::span<const float>) override {
    throw std::runtime_error("the disk is full");
  }
  fs::path staged() const override { return target_->staged(); }
  void finish() override { target_->finish(); }
  void commit() override { target_->commit(); }

 private:
  std::unique_ptr<ModelExport> target_;
};

/// A task whose model is exported in the files of transformers, a small number of bytes each.
class ShardedTask final : public train::Task {
 public:
  const nn::Model& model() const override { return text_.model(); }
  void initial_values(const train::TensorWriter& write) const override { text_.initial_values(write); }
  std::size_t steps_per_epoch() const override { return text_.steps_per_epoch(); }
  std::vector<std::size_t> global_batch(std::size_t step) const override { return text_.global_batch(step); }
  train::WorkKind work() const override { return text_.work(); }
  std::size_t rows_of(std::size_t sample) const override { return text_.rows_of(sample); }
  double weight(std::span<const std::size_t> samples) const override { return text_.weight(samples); }
  void assemble(std::size_t step, std::span<const std::size_t> samples, std::span<const std::uint32_t> ids,
                Batch& batch) const override {
    text_.assemble(step, samples, ids, batch);
  }
  train::Evaluation* evaluation() const override { return nullptr; }
  void write_results(const fs::path&) const override {}
  std::unique_ptr<train::ModelExport> start_export(const fs::path& directory) const override {
    return start_export_part(directory, {});
  }
  std::vector<std::size_t> export_files() const override {
    return data::divide_into_shards(weight_tensors(model().table()), format_);
  }
  std::unique_ptr<train::ModelExport> start_export_part(const fs::path& directory,
                                                        const train::ExportPart& part) const override {
    ++parts_started;
    auto target =
        std::make_unique<PretrainedExport>(directory, OrderedJson{{"model_type", "test"}},
                                           std::span<const data::ModelFile>(), model().table(), format_, part);
    if (fails && part.writer + 1 == part.writers) return std::make_unique<FailingExport>(std::move(target));
    return target;
  }

  bool fails = false;  ///< of the last writer
  mutable std::size_t parts_started = 0;

 private:
  small_models::TextTask text_{{.sentences = 60, .batch = 9, .evaluation_sentences = 70}};
  data::WeightFormat format_{.shard_bytes = 20'000};
};

train::TrainConfig config_of(ModeKind mode, const fs::path& output) {
  train::TrainConfig config;
  config.steps = 2;
  config.evaluate_every = 3;
  config.output = output;
  config.gemm.provider = default_gemm_provider();
  return tests::in_mode(config, mode);
}

std::vector<float> values_in(const data::WeightFiles& files, const std::string& name) {
  return files.entries().at(name).file->read_float(name);
}

TEST(SharedExport, WritersShareFilesInTurn) {
  const std::vector<std::size_t> files{2, 1, 3};
  const auto parts = [&](const std::vector<std::size_t>& writer_of) {
    std::vector<std::pair<std::size_t, std::vector<std::size_t>>> parts;
    for (const train::WrittenTensors& part : train::divide_export(files, writer_of)) {
      parts.emplace_back(part.rank, part.tensors);
    }
    return parts;
  };
  using Part = std::pair<std::size_t, std::vector<std::size_t>>;
  EXPECT_THAT(parts({0, 0, 0}), ElementsAre(Part(0, {0, 1, 2, 3, 4, 5})));
  EXPECT_THAT(parts({0, 0, 2, 2}), ElementsAre(Part(0, {0, 1, 3, 4, 5}), Part(2, {2})));
  EXPECT_THAT(parts({0, 1, 2, 3, 4}), ElementsAre(Part(0, {0, 1}), Part(1, {2}), Part(2, {3, 4, 5})));
}

TEST(SharedExport, FilesOfSeveralRanksHoldTheTrainedValues) {
  for (const ModeKind mode : tests::every_mode) {
    ShardedTask task;
    const tests::SharedDirectory directory;
    train::Trainer trainer(config_of(mode, directory.path() / "run"), task, train::ranks_of(tests::launch()));
    trainer.run({});
    const std::size_t files = task.export_files().size(), writers = std::min(files, world().size());
    ASSERT_GE(files, 4u);
    // best/ and last/ are exported, by every rank that has a file to write.
    EXPECT_EQ(task.parts_started, world().rank() < writers ? 2u : 0u);
    world().barrier("until all have exported");
    const data::WeightFiles written(directory.path() / "run/last");
    for (const ParameterTensor& tensor : task.model().table().tensors()) {
      std::vector<float> expected(tensor.size);
      trainer.read_tensor(tensor.name, expected);
      EXPECT_EQ(values_in(written, tensor.name), expected) << tensor.name << ", " << to_string(mode);
    }
  }
}

TEST(SharedExport, AWriterThatFailsEndsAllRanksAndLeavesTheEarlierExport) {
  const tests::SharedDirectory directory;
  const fs::path output = directory.path() / "run";
  ShardedTask task;
  train::Trainer(config_of(ModeKind::sharded, output), task, train::ranks_of(tests::launch())).run({});
  world().barrier("until all have exported");
  const data::WeightFiles before(output / "last");
  const std::string name = task.model().table().tensor(0).name;
  const std::vector<float> values = values_in(before, name);
  task.fails = true;
  train::TrainConfig longer = config_of(ModeKind::sharded, output);
  longer.steps = 4;
  train::Trainer trainer(longer, task, train::ranks_of(tests::launch()));
  const std::string error = tests::error_of([&] { trainer.run({}); });
  EXPECT_THAT(error, HasSubstr("the disk is full"));
  const std::size_t last = std::min(task.export_files().size(), world().size()) - 1;
  if (last > 0) EXPECT_THAT(error, HasSubstr(fmt::format("rank {}: ", last)));
  world().barrier("until all have failed");
  EXPECT_EQ(values_in(data::WeightFiles(output / "last"), name), values);
  for (const auto& entry : fs::directory_iterator(output)) {
    EXPECT_THAT(entry.path().filename().string(), ::testing::Not(HasSubstr("partial")));
  }
}

}  // namespace
}  // namespace mylos::tasks
