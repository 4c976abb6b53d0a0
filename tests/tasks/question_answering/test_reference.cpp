// Compares forward and backward passes and five AdamW steps with values recorded from PyTorch, for every recorded
// folder.

#include "core/kernels/gemm.hpp"
#include "data/huggingface/bert_config.hpp"
#include "data/huggingface/safetensors.hpp"
#include "nn/bert/bert_question_answering.hpp"
#include "nn/optimizer.hpp"
#include "parallel/sharding/sharding_strategy.hpp"
#include "tasks/question_answering/bert_shape.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/single_step.hpp"
#include "train/engine/initial_parameters.hpp"
#include "train/engine/training_step.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numeric>

namespace mylos::tasks {
namespace {

namespace fs = std::filesystem;
namespace names = nn::question_answering;

/// The recorded batch, without its padding.
struct RecordedBatch {
  explicit RecordedBatch(const fs::path& file) {
    const data::SafetensorsFile recorded(file);
    const auto mask = recorded.read_integer("attention_mask");
    const auto ids = recorded.read_integer("input_ids"), types = recorded.read_integer("token_type_ids");
    samples = recorded.find("attention_mask")->shape[0];
    padded = recorded.find("attention_mask")->shape[1];
    for (std::size_t sample = 0; sample < samples; ++sample) {
      const auto begin = mask.begin() + static_cast<std::ptrdiff_t>(sample * padded);
      lengths.push_back(
          static_cast<std::size_t>(std::accumulate(begin, begin + static_cast<std::ptrdiff_t>(padded), 0L)));
      for (std::size_t i = 0; i < lengths.back(); ++i) {
        tokens.push_back(static_cast<std::int32_t>(ids[sample * padded + i]));
        segments.push_back(static_cast<std::int32_t>(types[sample * padded + i]));
      }
    }
    for (const auto label : recorded.read_integer("start_positions"))
      starts.push_back(static_cast<std::int32_t>(label));
    for (const auto label : recorded.read_integer("end_positions")) ends.push_back(static_cast<std::int32_t>(label));
  }

  std::size_t samples = 0, padded = 0;
  std::vector<std::size_t> lengths;
  std::vector<std::int32_t> tokens, segments, starts, ends;
};

/// Trains on the recorded batch in every step.
class RecordedTask final : public train::Task {
 public:
  RecordedTask(const fs::path& folder, Precision precision)
      : weights_(folder / "model.safetensors"),
        batch_(folder / "batch.safetensors"),
        model_(
            nn::make_bert_question_answering(bert_shape(data::read_bert_config(folder / "config.json")), precision)) {}

  const nn::Model& model() const override { return *model_; }
  void initial_values(const train::TensorWriter& write) const override {
    for (const data::TensorInfo& tensor : weights_.tensors()) write(tensor.name, weights_.read_float(tensor.name));
  }
  std::size_t steps_per_epoch() const override { return 1; }
  std::vector<std::size_t> global_batch(std::size_t) const override {
    std::vector<std::size_t> all(batch_.samples);
    std::iota(all.begin(), all.end(), std::size_t{0});
    return all;
  }
  std::size_t rows_of(std::size_t sample) const override { return batch_.lengths[sample]; }
  double weight(std::span<const std::size_t> samples) const override { return static_cast<double>(samples.size()); }
  void assemble(std::size_t, std::span<const std::size_t> samples, std::span<const std::uint32_t> ids,
                Batch& batch) const override {
    const std::size_t first = samples.front(), count = samples.size();
    const auto offset = std::accumulate(batch_.lengths.begin(),
                                        batch_.lengths.begin() + static_cast<std::ptrdiff_t>(first), std::size_t{0});
    const auto lengths = std::span(batch_.lengths).subspan(first, count);
    const std::size_t rows = std::accumulate(lengths.begin(), lengths.end(), std::size_t{0});
    batch.reset(lengths, ids);
    batch.set_indices(names::tokens, std::span(batch_.tokens).subspan(offset, rows));
    batch.set_indices(names::segments, std::span(batch_.segments).subspan(offset, rows));
    batch.group_positions();
    batch.set(names::start_labels, std::span(batch_.starts).subspan(first, count));
    batch.set(names::end_labels, std::span(batch_.ends).subspan(first, count));
  }
  train::Evaluation* evaluation() const override { return nullptr; }
  void write_results(const fs::path&) const override {}
  const train::ModelExporter* exporter() const override { return nullptr; }

  const RecordedBatch& batch() const { return batch_; }
  BatchShape shape() const { return {batch_.samples, batch_.tokens.size(), *std::ranges::max_element(batch_.lengths)}; }

 private:
  data::SafetensorsFile weights_;
  RecordedBatch batch_;
  std::unique_ptr<nn::Model> model_;
};

/// Everything a step needs, with the recorded weights.
struct Engine {
  Engine(const fs::path& folder, const std::string& provider)
      : task(folder, Precision::float32),
        gemm(provider),
        store(task.model().table(), Precision::float32, ParameterStore::Purpose::training),
        mode(parallel::make_single_process_mode(store)),
        optimizer(nn::make_adamw({.weight_decay = 0.01}, store.table(), mode->slices())),
        arena("mylos::test::arena", planned(task)) {
    load_initial_parameters(space, task, std::nullopt, store, *mode);
  }
  static std::size_t planned(const RecordedTask& task) {
    Arena training, prediction;
    task.model().plan(training, task.shape(), ParameterStore::Purpose::training, nn::Recompute::none);
    task.model().plan(prediction, task.shape(), ParameterStore::Purpose::inference, nn::Recompute::none);
    return std::max(training.peak(), prediction.peak());
  }
  nn::Pass pass() { return {space, gemm, store, mode->hooks(), arena}; }
  train::StepContext context() { return {task, store, *mode, *optimizer, gemm, arena, *ranks}; }
  void fill_batch() {
    std::vector<std::uint32_t> ids(task.batch().samples);
    std::iota(ids.begin(), ids.end(), 0u);
    task.assemble(0, task.global_batch(0), ids, batch);
  }

  RecordedTask task;
  ExecutionSpace space;
  Gemm gemm;
  ParameterStore store;
  std::unique_ptr<parallel::ShardingStrategy> mode;
  std::unique_ptr<nn::Optimizer> optimizer;
  Arena arena;
  std::unique_ptr<parallel::Communicator> ranks = parallel::make_self_communicator();
  Batch batch;
};

/// Runs `check` for each folder with each provider.
template <class Check>
void for_each_reference(const Check& check) {
  const auto folders = tests::recorded_models("");
  ASSERT_FALSE(folders.empty());
  for (const fs::path& folder : folders) {
    for (const std::string& provider : exact_gemm_providers()) {
      SCOPED_TRACE(folder.string() + " with " + provider);
      Engine engine(folder, provider);
      check(folder, engine);
    }
  }
}

std::vector<float> to_host(const Vector<float>& values) {
  std::vector<float> host(values.size());
  Kokkos::deep_copy(Kokkos::View<float*, HostSpace, Kokkos::MemoryUnmanaged>(host.data(), host.size()), values);
  return host;
}

float largest(std::span<const float> values) {
  float result = 0.0f;
  for (const float value : values) result = std::max(result, std::abs(value));
  return result;
}

/// Adding a constant to the outputs of these tensors does not change the loss, so their gradients are rounding noise.
bool is_noise(const std::string& name, const std::string& last_layer) {
  return name.ends_with("key.bias") || name == "qa_outputs.bias" ||
         name == "bert.encoder.layer." + last_layer + ".output.LayerNorm.bias";
}

TEST(reference, LogitsAndLoss) {
  for_each_reference([](const fs::path& folder, Engine& engine) {
    const data::SafetensorsFile recorded(folder / "outputs.safetensors");
    const auto starts = recorded.read_float("start_logits"), ends = recorded.read_float("end_logits");
    engine.fill_batch();
    const Vector<float> losses("mylos::test::losses", engine.task.batch().samples);
    const Matrix<float> outputs = engine.task.model().predict(engine.pass(), engine.batch, losses);
    const auto logits = to_host(Vector<float>(outputs.data(), outputs.size()));
    std::size_t row = 0;
    for (std::size_t sample = 0; sample < engine.task.batch().samples; ++sample) {
      for (std::size_t i = 0; i < engine.task.batch().lengths[sample]; ++i, ++row) {
        const std::size_t position = sample * engine.task.batch().padded + i;
        ASSERT_NEAR(logits[2 * row], starts[position], 1e-5) << "start of sample " << sample << " token " << i;
        ASSERT_NEAR(logits[2 * row + 1], ends[position], 1e-5) << "end of sample " << sample << " token " << i;
      }
    }
    const auto sample_losses = to_host(losses);
    const double loss = std::accumulate(sample_losses.begin(), sample_losses.end(), 0.0);
    EXPECT_NEAR(loss / static_cast<double>(sample_losses.size()), recorded.read_float("loss")[0], 1e-5);
  });
}

TEST(reference, Gradients) {
  for_each_reference([](const fs::path& folder, Engine& engine) {
    const data::SafetensorsFile recorded(folder / "gradients.safetensors");
    engine.fill_batch();
    engine.mode->begin_step(engine.space);
    const std::size_t samples = engine.task.batch().samples;
    const Vector<float> losses("mylos::test::losses", samples);
    engine.task.model().train(engine.pass(), engine.batch, 1.0f / static_cast<float>(samples), losses);
    const ParameterTable& table = engine.store.table();
    EXPECT_EQ(recorded.tensors().size(), table.tensors().size());
    for (std::size_t row = 0; row < table.tensors().size(); ++row) {
      const auto expected = recorded.read_float(table.tensor(row).name);
      const auto actual = to_host(engine.store.gradient(row));
      ASSERT_EQ(actual.size(), expected.size()) << table.tensor(row).name;
      const float tolerance = 1e-4f * largest(expected) + 1e-7f;
      for (std::size_t i = 0; i < expected.size(); ++i) {
        ASSERT_NEAR(actual[i], expected[i], tolerance) << table.tensor(row).name << " element " << i;
      }
    }
  });
}

TEST(reference, AdamWSteps) {
  for_each_reference([](const fs::path& folder, Engine& engine) {
    std::ifstream file(folder / "steps.json");
    const auto steps = nlohmann::json::parse(file);
    const std::size_t samples = engine.task.batch().samples;
    train::TrainingStep step(engine.context(), {.largest_batch = samples, .limit = {.samples = samples}});
    double learning_rates = 0.0;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const double learning_rate = steps[i]["learning_rate"].get<double>();
      const train::StepResult result = tests::single_step(step, engine.space, i, learning_rate);
      EXPECT_NEAR(result.loss, steps[i]["loss"].get<double>(), 1e-5) << "step " << i + 1;
      EXPECT_NEAR(result.gradient_norm, steps[i]["gradient_norm"].get<double>(), 1e-4) << "step " << i + 1;
      learning_rates += learning_rate;
    }
    const data::SafetensorsFile expected(folder /
                                         fs::path("after-" + std::to_string(steps.size()) + "-steps.safetensors"));
    const data::SafetensorsFile gradients(folder / "gradients.safetensors");
    const auto layers = data::read_bert_config(folder / "config.json").num_hidden_layers;
    const std::string last_layer = std::to_string(layers - 1);
    for (std::size_t row = 0; row < engine.store.table().tensors().size(); ++row) {
      const std::string& name = engine.store.table().tensor(row).name;
      const auto values = expected.read_float(name), gradient = gradients.read_float(name);
      std::vector<float> actual(values.size());
      engine.mode->read_tensor(row, 0, actual);
      for (std::size_t i = 0; i < values.size(); ++i) {
        // AdamW divides a gradient by its own size, so if the gradient is rounding noise, the step is too.
        const bool noise = is_noise(name, last_layer) || (gradient[i] != 0.0f && std::abs(gradient[i]) < 1e-5f);
        ASSERT_NEAR(actual[i], values[i], noise ? 2.0 * learning_rates : 1e-5) << name << " element " << i;
      }
    }
  });
}

TEST(reference, MicroBatchesGiveTheSameSteps) {
  for_each_reference([](const fs::path& folder, Engine& engine) {
    Engine other(folder, std::string(engine.gemm.provider()));
    const std::size_t samples = engine.task.batch().samples;
    train::TrainingStep whole(engine.context(), {.largest_batch = samples, .limit = {.samples = samples}});
    train::TrainingStep split(other.context(), {.largest_batch = samples, .limit = {.samples = 1}});
    for (std::size_t i = 0; i < 5; ++i) {
      const train::StepResult a = tests::single_step(whole, engine.space, i, 1e-3);
      const train::StepResult b = tests::single_step(split, other.space, i, 1e-3);
      EXPECT_NEAR(a.loss, b.loss, 1e-5 * a.loss);
      EXPECT_NEAR(a.gradient_norm, b.gradient_norm, 1e-4 * a.gradient_norm);
    }
  });
}

}  // namespace
}  // namespace mylos::tasks
