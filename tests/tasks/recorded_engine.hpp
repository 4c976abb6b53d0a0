#pragma once

#include "core/arena.hpp"
#include "core/kernels/products/gemm.hpp"
#include "data/huggingface/safetensors.hpp"
#include "nn/model.hpp"
#include "nn/optimizer.hpp"
#include "parallel/sharding/sharding_strategy.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/single_step.hpp"
#include "train/engine/loop/training_step.hpp"
#include "train/engine/models/initial_parameters.hpp"
#include "train/engine/task.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
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

/// Returns the weight files of a recorded model: of an adapter, those of its base and its own.
inline std::vector<std::filesystem::path> weight_files(const std::filesystem::path& folder) {
  if (!std::filesystem::exists(folder / "adapter")) return {folder / "model.safetensors"};
  return {folder / "base" / "model.safetensors", folder / "adapter" / "adapter_model.safetensors"};
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
  nn::Pass pass() {
    nn::Pass pass{space, gemm, store, strategy->hooks(), arena};
    pass.recompute = recompute;
    return pass;
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
