// Compares forward and backward passes and five AdamW steps with values recorded from PyTorch, for every recorded
// folder.

#include "families/bert/bert_config.hpp"
#include "families/bert/bert_model.hpp"
#include "tests/support/arrays.hpp"
#include "tests/tasks/recorded_engine.hpp"

#include <cmath>

namespace mylos::tasks {
namespace {

namespace fs = std::filesystem;
namespace names = nn::names;
using Engine = tests::RecordedEngine<nn::Model>;

std::vector<std::int32_t> integers_of(const data::SafetensorsFile& file, const char* name) {
  const auto values = file.read_integer(name);
  return {values.begin(), values.end()};
}

/// Reads the recorded batch, without its padding.
tests::RecordedSamples read_batch(const fs::path& path) {
  const data::SafetensorsFile file(FileReader(), path);
  tests::RecordedSamples samples = tests::read_recorded_segments(file);
  samples.fill = [fill = samples.fill, ones = std::vector<std::size_t>(samples.lengths.size(), 1),
                  starts = integers_of(file, "start_positions"),
                  ends = integers_of(file, "end_positions")](std::span<const std::size_t> chosen, Batch& batch) {
    fill(chosen, batch);
    batch.set(names::start_labels, std::span<const std::int32_t>(tests::rows_of(ones, starts, chosen)));
    batch.set(names::end_labels, std::span<const std::int32_t>(tests::rows_of(ones, ends, chosen)));
  };
  return samples;
}

/// Runs `check` for each folder with each provider, with these tensors frozen.
template <class Check>
void for_each_reference(const Check& check, const std::vector<std::string>& frozen = {}) {
  tests::for_each_recorded({""}, [&](const fs::path& folder, const std::string& provider) {
    const families::BertShape shape = families::read_bert_config({FileReader(), folder / "config.json"});
    auto model = families::make_bert_question_answering(shape, Precision::float32);
    model->freeze(frozen);
    Engine engine(folder, provider, std::move(model), read_batch(folder / "batch.safetensors"));
    check(folder, engine);
  });
}

/// Adding a constant to the outputs of these tensors does not change the loss, so their gradients are rounding noise.
bool is_noise(const std::string& name, const std::string& last_layer) {
  return name.ends_with("key.bias") || name == "qa_outputs.bias" ||
         name == "bert.encoder.layer." + last_layer + ".output.LayerNorm.bias";
}

TEST(reference, LogitsAndLoss) {
  for_each_reference([](const fs::path& folder, Engine& engine) {
    const data::SafetensorsFile recorded(FileReader(), folder / "outputs.safetensors");
    const auto starts = recorded.read_float("start_logits"), ends = recorded.read_float("end_logits");
    const std::vector<std::size_t>& lengths = engine.task.samples().lengths;
    const std::size_t padded = recorded.find("start_logits")->shape[1];
    Batch batch;
    engine.task.samples().assemble(batch);
    const Vector<float> losses("mylos::test::losses", lengths.size());
    const tests::Values logits = tests::host_values(engine.task.model().predict(engine.pass(), batch, losses));
    std::size_t row = 0;
    for (std::size_t sample = 0; sample < lengths.size(); ++sample) {
      for (std::size_t i = 0; i < lengths[sample]; ++i, ++row) {
        const std::size_t position = sample * padded + i;
        ASSERT_NEAR(logits[2 * row], starts[position], 1e-5) << "start of sample " << sample << " token " << i;
        ASSERT_NEAR(logits[2 * row + 1], ends[position], 1e-5) << "end of sample " << sample << " token " << i;
      }
    }
    const tests::Values all = tests::host_values(losses);
    const double loss = std::accumulate(all.begin(), all.end(), 0.0);
    EXPECT_NEAR(loss / static_cast<double>(all.size()), recorded.read_float("loss")[0], 1e-5);
  });
}

TEST(reference, Gradients) {
  for_each_reference([](const fs::path& folder, Engine& engine) {
    const data::SafetensorsFile recorded(FileReader(), folder / "gradients.safetensors");
    Batch batch;
    engine.task.samples().assemble(batch);
    engine.strategy->begin_step(engine.space);
    const std::size_t samples = engine.task.samples().lengths.size();
    const Vector<float> losses("mylos::test::losses", samples);
    engine.task.model().train(engine.pass(), batch, 1.0f / static_cast<float>(samples), losses);
    const ParameterTable& table = engine.store.table();
    EXPECT_EQ(recorded.tensors().size(), table.tensors().size());
    for (std::size_t row = 0; row < table.tensors().size(); ++row) {
      const auto expected = recorded.read_float(table.tensor(row).name);
      const tests::Values actual = tests::host_values(engine.store.gradient(row));
      ASSERT_EQ(actual.size(), expected.size()) << table.tensor(row).name;
      float largest = 0.0f;
      for (const float value : expected) largest = std::max(largest, std::abs(value));
      for (std::size_t i = 0; i < expected.size(); ++i) {
        ASSERT_NEAR(actual[i], expected[i], 1e-4f * largest + 1e-7f) << table.tensor(row).name << " element " << i;
      }
    }
  });
}

/// Repeats the steps of `recording`, in the folder of the model or below it.
void expect_recorded_steps(const fs::path& folder, const fs::path& recording, Engine& engine) {
  const auto steps = tests::read_recorded_json(recording / "steps.json");
  double learning_rates = 0.0;
  engine.repeat_steps(steps, [&](const train::StepResult& result, const nlohmann::json& recorded) {
    EXPECT_NEAR(result.loss, recorded["loss"].get<double>(), 1e-5);
    EXPECT_NEAR(result.gradient_norm, recorded["gradient_norm"].get<double>(), 1e-4);
    learning_rates += recorded["learning_rate"].get<double>();
  });
  const data::SafetensorsFile expected(
      FileReader(), recording / fs::path("after-" + std::to_string(steps.size()) + "-steps.safetensors"));
  const data::SafetensorsFile initial(FileReader(), folder / "model.safetensors"),
      gradients(FileReader(), folder / "gradients.safetensors");
  const auto layers = families::read_bert_config({FileReader(), folder / "config.json"}).layers;
  const std::string last_layer = std::to_string(layers - 1);
  for (std::size_t row = 0; row < engine.store.table().tensors().size(); ++row) {
    const ParameterTensor& tensor = engine.store.table().tensor(row);
    const auto values = expected.read_float(tensor.name), gradient = gradients.read_float(tensor.name);
    std::vector<float> actual(values.size());
    engine.strategy->read_tensor(row, 0, actual);
    if (!tensor.group.trainable) {
      EXPECT_EQ(actual, initial.read_float(tensor.name)) << tensor.name;
      EXPECT_EQ(actual, values) << tensor.name << " of PyTorch";
      continue;
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      // AdamW divides a gradient by its own size, so if the gradient is rounding noise, the step is too.
      const bool noise = is_noise(tensor.name, last_layer) || (gradient[i] != 0.0f && std::abs(gradient[i]) < 1e-5f);
      ASSERT_NEAR(actual[i], values[i], noise ? 2.0 * learning_rates : 1e-5) << tensor.name << " element " << i;
    }
  }
}

TEST(reference, AdamWSteps) {
  for_each_reference([](const fs::path& folder, Engine& engine) { expect_recorded_steps(folder, folder, engine); });
}

/// As PyTorch with requires_grad off, by lab/record/tiny_bert.py.
TEST(reference, AdamWStepsWithFrozenTensors) {
  const std::pair<std::string, std::vector<std::string>> runs[] = {
      {"lower-layers", {"embeddings", "layers.0-1"}}, {"body", {"body"}}, {"queries", {"layers.1", "*query*"}}};
  for (const auto& [run, frozen] : runs) {
    SCOPED_TRACE(run);
    std::size_t compared = 0;
    for_each_reference(
        [&](const fs::path& folder, Engine& engine) {
          if (!fs::exists(folder / "frozen")) return;
          expect_recorded_steps(folder, folder / "frozen" / run, engine);
          ++compared;
        },
        frozen);
    EXPECT_GT(compared, 0u);
  }
}

}  // namespace
}  // namespace mylos::tasks
