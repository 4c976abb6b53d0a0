#pragma once

#include "core/arena.hpp"
#include "core/kernels/products/gemm.hpp"
#include "data/huggingface/adapter_weights.hpp"
#include "data/huggingface/safetensors.hpp"
#include "nn/head.hpp"
#include "nn/optimizer.hpp"
#include "parallel/sharding/sharding_strategy.hpp"
#include "tests/support/arrays.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/single_step.hpp"
#include "tests/support/worst.hpp"
#include "train/engine/loop/training_step.hpp"
#include "train/engine/models/initial_parameters.hpp"
#include "train/engine/task.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

/// Models whose passes and steps were recorded from PyTorch, and an engine for one of them.
namespace mylos::tests {

/// The samples of a batch, packed without padding.
struct RecordedSamples {
  std::vector<std::size_t> lengths;  ///< rows of each sample
  std::vector<double> weights;       ///< number of predictions of each sample
  /// Sets the arrays of these samples.
  std::function<void(std::span<const std::size_t> samples, Batch& batch)> fill;

  std::vector<std::size_t> all() const {
    std::vector<std::size_t> samples(lengths.size());
    std::iota(samples.begin(), samples.end(), std::size_t{0});
    return samples;
  }
  void assemble(std::span<const std::size_t> samples, std::span<const std::uint32_t> ids, Batch& batch) const {
    std::vector<std::size_t> chosen;
    for (const std::size_t sample : samples) chosen.push_back(lengths[sample]);
    batch.reset(chosen, ids);
    fill(samples, batch);
  }
  /// Packs all samples.
  void assemble(Batch& batch) const {
    const std::vector<std::size_t> samples = all();
    assemble(samples, std::vector<std::uint32_t>(samples.begin(), samples.end()), batch);
  }
  BatchShape shape() const {
    return {lengths.size(), std::reduce(lengths.begin(), lengths.end()), *std::ranges::max_element(lengths)};
  }
};

/// Returns the rows of these samples from an array with the rows of all samples.
template <class Value>
std::vector<Value> rows_of(const std::vector<std::size_t>& lengths, const std::vector<Value>& rows,
                           std::span<const std::size_t> samples) {
  std::vector<Value> taken;
  for (const std::size_t sample : samples) {
    const auto first =
        rows.begin() +
        std::reduce(lengths.begin(), lengths.begin() + static_cast<std::ptrdiff_t>(sample), std::ptrdiff_t{0});
    taken.insert(taken.end(), first, first + static_cast<std::ptrdiff_t>(lengths[sample]));
  }
  return taken;
}

/// Returns the samples of a recorded batch with token types, without its padding and labels.
inline RecordedSamples read_recorded_segments(const data::SafetensorsFile& file) {
  const auto mask = file.read_integer("attention_mask");
  const auto ids = file.read_integer("input_ids"), types = file.read_integer("token_type_ids");
  RecordedSamples samples;
  const std::size_t count = file.find("attention_mask")->shape[0], padded = file.find("attention_mask")->shape[1];
  std::vector<std::int32_t> tokens, segments;
  for (std::size_t sample = 0; sample < count; ++sample) {
    const std::size_t before = tokens.size();
    for (std::size_t i = sample * padded; i < (sample + 1) * padded && mask[i] != 0; ++i) {
      tokens.push_back(static_cast<std::int32_t>(ids[i]));
      segments.push_back(static_cast<std::int32_t>(types[i]));
    }
    samples.lengths.push_back(tokens.size() - before);
  }
  samples.weights.assign(count, 1.0);
  samples.fill = [tokens, segments, lengths = samples.lengths](std::span<const std::size_t> chosen, Batch& batch) {
    batch.set_indices(nn::names::tokens, rows_of(lengths, tokens, chosen));
    batch.set_indices(nn::names::segments, rows_of(lengths, segments, chosen));
    batch.group_positions();
  };
  return samples;
}

/// Returns the directory of a recorded model: of an adapter, that of its base.
inline std::filesystem::path model_folder(const std::filesystem::path& folder) {
  return data::is_adapter_directory(folder / "adapter") ? folder / "base" : folder;
}
/// Returns the weight files of a recorded model: of an adapter, those of its base and its own.
inline std::vector<std::filesystem::path> weight_files(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files = {model_folder(folder) / "model.safetensors"};
  if (model_folder(folder) != folder) files.push_back(folder / "adapter" / data::adapter_weights_file);
  return files;
}
inline data::AdapterConfig read_recorded_adapter(const std::filesystem::path& folder) {
  return data::read_adapter_config(FileReader(), folder / "adapter", [](const std::string&) {});
}
inline std::vector<data::TensorSpec> specs_of(const ParameterTable& table) {
  std::vector<data::TensorSpec> specs;
  for (const ParameterTensor& tensor : table.tensors()) specs.push_back({tensor.name, tensor.shape});
  return specs;
}
/// Adds the recorded adapter to its base, if there is one.
inline std::unique_ptr<nn::Model> with_adapter(const std::filesystem::path& folder, std::unique_ptr<nn::Model> base) {
  if (model_folder(folder) == folder) return base;
  const data::AdapterConfig config = read_recorded_adapter(folder);
  nn::Adapters adapters;
  for (const auto& [module, rank, scale] : data::adapter_targets(config, nn::linear_modules(base->table()))) {
    adapters.layers.push_back({module, rank, static_cast<float>(scale)});
  }
  adapters.trained = data::trained_modules(config, data::modules_of(specs_of(base->table())));
  base->adapt(adapters);
  return base;
}
/// Returns the name in a parameter table of a tensor in these files, and in those of gradients and results.
inline std::string table_name(std::string_view name) {
  constexpr std::string_view prefix = "base_model.model.";
  return std::string(name.starts_with(prefix) ? name.substr(prefix.size()) : name);
}
/// Returns the values of a recorded tensor by its name in the table.
inline std::vector<float> read_recorded(const data::SafetensorsFile& file, const std::string& name) {
  for (const data::TensorInfo& tensor : file.tensors()) {
    if (table_name(tensor.name) == name) return file.read_float(tensor.name);
  }
  ADD_FAILURE() << name << " is not recorded";
  return {};
}

/// Trains on all samples in every step, from the weights of files, or random weights if there are none. A later file
/// replaces values of an earlier one.
template <class Model>
class RecordedTask final : public train::Task {
 public:
  RecordedTask(std::vector<std::filesystem::path> weights, std::unique_ptr<Model> model, RecordedSamples samples)
      : weights_(std::move(weights)), model_(std::move(model)), samples_(std::move(samples)) {}

  const Model& model() const override { return *model_; }
  void initial_values(const FileReader& files, const train::TensorWriter& write) const override {
    for (const std::filesystem::path& file : weights_) {
      const data::SafetensorsFile weights(files, file);
      for (const data::TensorInfo& tensor : weights.tensors()) {
        write(table_name(tensor.name), weights.read_float(tensor.name));
      }
    }
  }
  std::size_t steps_per_epoch() const override { return 1; }
  std::vector<std::size_t> global_batch(std::size_t) const override { return samples_.all(); }
  std::size_t rows_of(std::size_t sample) const override { return samples_.lengths[sample]; }
  double weight(std::span<const std::size_t> samples) const override {
    double sum = 0.0;
    for (const std::size_t sample : samples) sum += samples_.weights[sample];
    return sum;
  }
  void assemble(std::size_t, std::span<const std::size_t> samples, std::span<const std::uint32_t> ids,
                Batch& batch) const override {
    samples_.assemble(samples, ids, batch);
  }
  train::Evaluation* evaluation() const override { return nullptr; }
  void write_results(const std::filesystem::path&) const override {}
  const train::ModelExporter* exporter() const override { return nullptr; }

  const RecordedSamples& samples() const { return samples_; }

 private:
  std::vector<std::filesystem::path> weights_;
  std::unique_ptr<Model> model_;
  RecordedSamples samples_;
};

/// Everything a training step needs, with the recorded weights.
template <class Model>
struct RecordedEngine {
  RecordedEngine(const std::filesystem::path& folder, const std::string& provider, std::unique_ptr<Model> model,
                 RecordedSamples samples, nn::Recompute recomputed = nn::Recompute::none)
      : task(weight_files(folder), std::move(model), std::move(samples)),
        recompute(recomputed),
        gemm(provider),
        store(task.model().table(), Precision::float32, ParameterStore::Purpose::training),
        strategy(parallel::make_single_process_strategy(store)),
        optimizer(nn::make_optimizer({.weight_decay = 0.01}, store.table(), strategy->slices())),
        arena("mylos::test::arena", planned()) {
    train::load_initial_parameters(space, task, std::nullopt, store, *strategy);
  }
  std::size_t planned() const {
    Arena training, prediction;
    const BatchShape shape = task.samples().shape();
    task.model().plan(training, shape, ParameterStore::Purpose::training, recompute);
    task.model().plan(prediction, shape, ParameterStore::Purpose::inference, nn::Recompute::none);
    return std::max(training.peak(), prediction.peak());
  }
  /// Returns the tensors that are trained.
  std::vector<std::size_t> trained() const {
    std::vector<std::size_t> trained;
    for (std::size_t row = 0; row < store.table().tensors().size(); ++row) {
      if (store.table().tensor(row).group.trainable) trained.push_back(row);
    }
    return trained;
  }
  nn::Pass pass() {
    nn::Pass pass{space, gemm, store, strategy->hooks(), arena};
    pass.recompute = recompute;
    return pass;
  }
  /// Runs forward and backward over all samples, for the mean of their losses by weight. Returns the losses.
  Values train_once() {
    Batch batch;
    task.samples().assemble(batch);
    strategy->begin_step(space);
    const std::vector<double>& weights = task.samples().weights;
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    const Vector<float> losses("test::losses", weights.size());
    task.model().train(pass(), batch, static_cast<float>(1.0 / sum), losses);
    return host_values(losses);
  }
  /// Returns the gradients of the tensors that are trained.
  std::vector<Values> gradients() const {
    std::vector<Values> all;
    for (const std::size_t row : trained()) all.push_back(host_values(store.gradient(row)));
    return all;
  }
  /// Repeats the AdamW steps of steps.json, and calls check(result, recorded) after each.
  template <class Check>
  void repeat_steps(const nlohmann::json& steps, const Check& check) {
    const std::size_t samples = task.samples().lengths.size();
    train::TrainingStep step({task, store, *strategy, *optimizer, gemm, arena, *ranks},
                             {.largest_batch = samples, .limit = {.samples = samples}});
    for (std::size_t i = 0; i < steps.size(); ++i) {
      check(single_step(step, space, i, steps[i]["learning_rate"].template get<double>()), steps[i]);
    }
  }

  RecordedTask<Model> task;
  nn::Recompute recompute;
  ExecutionSpace space;
  Gemm gemm;
  std::unique_ptr<parallel::Communicator> ranks = parallel::make_self_communicator();
  ParameterStore store;
  std::unique_ptr<parallel::ShardingStrategy> strategy;
  std::unique_ptr<nn::Optimizer> optimizer;
  Arena arena;
};

inline nlohmann::json read_recorded_json(const std::filesystem::path& path) {
  std::ifstream file(path);
  return nlohmann::json::parse(file);
}

/// Returns how far rounding moves the elements of a tensor with these gradients. AdamW divides a gradient by its size,
/// so an error of 1e-6 of the largest gradient is a large share of the steps of elements with small ones.
inline Values moved_by_rounding(std::span<const float> gradient, const nlohmann::json& steps) {
  double rates = 0.0, largest = 0.0;
  for (const auto& step : steps) rates += step["learning_rate"].get<double>();
  for (const float value : gradient) largest = std::max(largest, std::fabs(static_cast<double>(value)));
  Values moved;
  for (const float value : gradient) {
    moved.push_back(rates * std::min(1.0, 1e-6 * largest / std::fabs(static_cast<double>(value))));
  }
  return moved;
}

/// Each test records its largest difference as a property.
class RecordedReference : public testing::Test {
 protected:
  void TearDown() override { RecordProperty("worst", fmt::format("{:.2e}", worst_)); }
  /// Expects that each element differs by at most 1e-5 of the largest element of `expected`, and by `more` (one for
  /// each element, or none).
  void compare(std::span<const double> actual, std::span<const float> expected, const std::string& what,
               const Values& more = {}) {
    ASSERT_EQ(actual.size(), expected.size()) << what;
    double largest = 0.0;
    for (const float value : expected) largest = std::max(largest, std::fabs(static_cast<double>(value)));
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const double difference = std::fabs(actual[i] - static_cast<double>(expected[i]));
      if (more.empty()) worst_ = worse_of(worst_, difference / largest);
      ASSERT_LE(difference, 1e-5 * largest + (more.empty() ? 0.0 : more[i]))
          << what << " element " << i << ": " << actual[i] << ", not " << expected[i];
    }
  }
  /// Trains on all samples once, and compares the gradients.
  template <class Engine>
  void compare_gradients(const std::filesystem::path& folder, Engine& engine) {
    const data::SafetensorsFile recorded(FileReader(), folder / "gradients.safetensors");
    engine.train_once();
    EXPECT_EQ(recorded.tensors().size(), engine.trained().size());
    for (const std::size_t row : engine.trained()) {
      const std::string& name = engine.store.table().tensor(row).name;
      compare(host_values(engine.store.gradient(row)), read_recorded(recorded, name), name);
    }
  }
  /// Repeats the recorded steps, and compares losses, norms and the trained tensors after them. `nearly_vanishes` names
  /// tensors whose gradients have elements that are little more than rounding.
  template <class Engine>
  void compare_steps(
      const std::filesystem::path& folder, Engine& engine,
      const std::function<bool(const std::string&)>& nearly_vanishes = [](const std::string&) { return false; }) {
    const auto steps = read_recorded_json(folder / "steps.json");
    engine.repeat_steps(steps, [&](const train::StepResult& result, const nlohmann::json& recorded) {
      compare(Values{result.loss}, std::vector{recorded["loss"].get<float>()}, "loss");
      compare(Values{result.gradient_norm}, std::vector{recorded["gradient_norm"].get<float>()}, "gradient norm");
    });
    const data::SafetensorsFile gradients(FileReader(), folder / "gradients.safetensors");
    const data::SafetensorsFile expected(FileReader(),
                                         folder / fmt::format("after-{}-steps.safetensors", steps.size()));
    for (const std::size_t row : engine.trained()) {
      const std::string& name = engine.store.table().tensor(row).name;
      const auto values = read_recorded(expected, name);
      std::vector<float> actual(values.size());
      engine.strategy->read_tensor(row, 0, actual);
      compare(Values(actual.begin(), actual.end()), values, name,
              nearly_vanishes(name) ? moved_by_rounding(read_recorded(gradients, name), steps) : Values());
    }
  }

 private:
  double worst_ = 0.0;
};

/// Calls check(folder, provider) for each recorded model of these families with each exact GEMM provider.
template <class Check>
void for_each_recorded(const std::vector<std::string>& families, const Check& check) {
  std::vector<std::filesystem::path> folders;
  for (const std::string& family : families) std::ranges::copy(recorded_models(family), std::back_inserter(folders));
  ASSERT_FALSE(folders.empty());
  for (const std::filesystem::path& folder : folders) {
    for (const std::string& provider : exact_gemm_providers()) {
      SCOPED_TRACE(folder.string() + " with " + provider);
      check(folder, provider);
    }
  }
}

}  // namespace mylos::tests
