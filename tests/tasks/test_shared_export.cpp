#include "tasks/interface/pretrained_export.hpp"
#include "tests/small_models/text_task.hpp"
#include "tests/support/rank_outcomes.hpp"
#include "tests/support/shared_directory.hpp"
#include "train/engine/loop/trainer.hpp"
#include "train/engine/models/model_export.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <stdexcept>

/// Exports of several files, which several ranks write side by side.
namespace mylos::tasks {
namespace {

namespace fs = std::filesystem;
using parallel::StrategyKind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

parallel::Communicator& world() { return tests::launch().world(); }

enum class Failure { none, start, write, finish };

/// An export that fails in the middle, or at its end.
class FailingExport final : public train::ModelExport {
 public:
  FailingExport(std::unique_ptr<ModelExport> target, Failure failure) : target_(std::move(target)), failure_(failure) {}

  void write(const ParameterTensor& tensor, std::size_t first, std::span<const float> values) override {
    if (failure_ == Failure::write) throw std::runtime_error("the disk is full");
    target_->write(tensor, first, values);
  }
  fs::path staged() const override { return target_->staged(); }
  void finish() override {
    if (failure_ == Failure::finish) throw std::runtime_error("the disk is full");
    target_->finish();
  }
  void commit() override {
    finish();
    target_->commit();
  }

 private:
  std::unique_ptr<ModelExport> target_;
  Failure failure_;
};

/// Exports in the files of transformers, a small number of bytes each.
class ShardedExporter final : public train::ModelExporter {
 public:
  explicit ShardedExporter(const ParameterTable& table)
      : exporter_(OrderedJson{{"model_type", "test"}}, {}, weight_tensors(table), {.shard_bytes = 20'000}) {}

  std::vector<std::size_t> files() const override { return exporter_.files(); }
  std::unique_ptr<train::ModelExport> start(const fs::path& directory, const train::ExportPart& part) const override {
    ++parts_started;
    const bool fails = part.writer + 1 == part.writers && failure != Failure::none;
    if (fails && failure == Failure::start) throw std::runtime_error("the disk is full");
    auto target = exporter_.start(directory, part);
    if (fails) return std::make_unique<FailingExport>(std::move(target), failure);
    return target;
  }

  Failure failure = Failure::none;  ///< of the last writer
  mutable std::size_t parts_started = 0;

 private:
  PretrainedExporter exporter_;
};

class ShardedTask final : public small_models::TextTask {
 public:
  train::Evaluation* evaluation() const override { return nullptr; }
  const ShardedExporter* exporter() const override { return &exporter_; }

  /// Makes the last writer fail.
  void fail_at(Failure failure) { exporter_.failure = failure; }

 private:
  ShardedExporter exporter_{model().table()};
};

train::TrainConfig config_of(StrategyKind strategy, const fs::path& output) {
  train::TrainConfig config;
  config.steps = 2;
  config.evaluate_every = 3;
  config.output = output;
  config.gemm.provider = default_gemm_provider();
  return tests::with_strategy(config, strategy);
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
  // Of five writers those on other nodes write too.
  EXPECT_THAT(parts({0, 1, 2, 3, 4}), ElementsAre(Part(0, {0, 1}), Part(1, {2}), Part(3, {3, 4, 5})));
}

TEST(SharedExport, FilesOfSeveralRanksHoldTheTrainedValues) {
  for (const StrategyKind strategy : tests::every_strategy) {
    ShardedTask task;
    const tests::SharedDirectory directory;
    train::Trainer trainer(config_of(strategy, directory.path() / "run"), task, train::ranks_of(tests::launch()));
    trainer.run({});
    const std::size_t files = task.exporter()->files().size(), writers = std::min(files, world().size());
    ASSERT_GE(files, 4u);
    // best/ and last/ are exported, by every rank that has a file to write.
    EXPECT_EQ(task.exporter()->parts_started, world().rank() < writers ? 2u : 0u);
    world().barrier("until all have exported");
    const data::WeightFiles written(FileReader(), directory.path() / "run/last");
    for (const ParameterTensor& tensor : task.model().table().tensors()) {
      std::vector<float> expected(tensor.size);
      trainer.read_tensor(tensor.name, expected);
      EXPECT_EQ(values_in(written, tensor.name), expected) << tensor.name << ", " << to_string(strategy);
    }
  }
}

TEST(SharedExport, AWriterThatFailsEndsAllRanksAndLeavesTheEarlierExport) {
  const tests::SharedDirectory directory;
  const fs::path output = directory.path() / "run";
  ShardedTask task;
  train::Trainer(config_of(StrategyKind::sharded, output), task, train::ranks_of(tests::launch())).run({});
  world().barrier("until all have exported");
  const std::string name = task.model().table().tensor(0).name;
  const std::vector<float> values = values_in(data::WeightFiles(FileReader(), output / "last"), name);
  const std::size_t last = std::min(task.exporter()->files().size(), world().size()) - 1;
  for (const Failure failure : {Failure::start, Failure::write, Failure::finish}) {
    task.fail_at(failure);
    train::TrainConfig longer = config_of(StrategyKind::sharded, output);
    longer.steps = 4;
    train::Trainer trainer(longer, task, train::ranks_of(tests::launch()));
    const std::string error = tests::error_of([&] { trainer.run({}); });
    EXPECT_THAT(error, HasSubstr("the disk is full"));
    if (last > 0) EXPECT_THAT(error, HasSubstr(fmt::format("rank {}: ", last)));
    world().barrier("until all have failed");
    EXPECT_EQ(values_in(data::WeightFiles(FileReader(), output / "last"), name), values);
    for (const auto& entry : fs::directory_iterator(output)) {
      EXPECT_THAT(entry.path().filename().string(), ::testing::Not(HasSubstr("partial")));
    }
    world().barrier("until all have looked");
  }
}

/// Tensors of several pieces, and state.
TEST(SharedExport, PiecesOfSeveralWritersAlternate) {
  ParameterTable::Builder builder;
  builder.unit("first").tensor("large", {3000, 1000}, {}).tensor("small", {7}, {}).state("mean", {5}, {});
  builder.unit("second").tensor("other", {1100, 1000}, {}).state("count", {1}, {});
  const ParameterTable table = builder.build();
  const auto value_of = [](const std::string& name, std::size_t i) {
    return static_cast<float>(name.front()) + static_cast<float>(i % 1000);
  };
  for (const StrategyKind kind : tests::every_strategy) {
    const std::size_t ranks = world().size();
    parallel::Mesh mesh(world(), parallel::ranks_that_split(kind, tests::hybrid_shard_size(), ranks));
    ParameterStore store(table, Precision::float32, ParameterStore::Purpose::training,
                         parallel::store_layout(kind, mesh.shard().size()));
    const auto strategy = parallel::make_sharding_strategy({.kind = kind}, mesh, store);
    for (std::size_t tensor = 0; tensor < table.tensors().size(); ++tensor) {
      std::vector<float> values(table.tensor(tensor).size);
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = value_of(table.tensor(tensor).name, i);
      strategy->write_tensor(tensor, values);
    }
    for (std::size_t state = 0; state < table.state_tensors().size(); ++state) {
      const std::string& name = table.state_tensors()[state].name;
      const auto host = Kokkos::create_mirror_view(store.state(state));
      for (std::size_t i = 0; i < host.size(); ++i) host(i) = value_of(name, i);
      Kokkos::deep_copy(store.state(state), host);
    }
    // Files: large; small and other; both state tensors.
    std::vector<std::size_t> every(ranks);
    std::iota(every.begin(), every.end(), std::size_t{0});
    const std::vector<train::WrittenTensors> writers = train::divide_export(std::vector<std::size_t>{1, 2, 2}, every);
    std::map<std::string, std::size_t> taken;
    train::gather_tensors(world(), store, *strategy, writers,
                          [&](const ParameterTensor& tensor, std::size_t first, std::span<const float> values) {
                            EXPECT_EQ(first, taken[tensor.name]) << tensor.name;
                            for (std::size_t i = 0; i < values.size(); ++i) {
                              ASSERT_EQ(values[i], value_of(tensor.name, first + i)) << tensor.name << " " << first + i;
                            }
                            taken[tensor.name] += values.size();
                          });
    std::map<std::string, std::size_t> expected;
    for (const train::WrittenTensors& writer : writers) {
      if (writer.rank != world().rank()) continue;
      for (const std::size_t number : writer.tensors) {
        const std::size_t parameters = table.tensors().size();
        const ParameterTensor& tensor =
            number < parameters ? table.tensor(number) : table.state_tensors()[number - parameters];
        expected[tensor.name] = tensor.size;
      }
    }
    EXPECT_EQ(taken, expected) << to_string(kind);
  }
}

}  // namespace
}  // namespace mylos::tasks
