#include "tests/tasks/language_modeling/llama_reference.hpp"

#include "tests/support/paths.hpp"
#include "tests/support/single_step.hpp"
#include "tests/support/worst.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numeric>

namespace mylos::tests {
namespace {

namespace fs = std::filesystem;

/// The tolerance, relative to the largest element of the array.
constexpr double llama_bound = 1e-5;

double largest_magnitude(std::span<const float> values) {
  double largest = 0.0;
  for (const float value : values) largest = std::max(largest, std::fabs(static_cast<double>(value)));
  return largest;
}

}  // namespace

nlohmann::json read_recorded_json(const fs::path& path) {
  std::ifstream file(path);
  return nlohmann::json::parse(file);
}

std::vector<float> without_padding(const RecordedTexts& texts, const data::SafetensorsFile& file, const char* name) {
  const auto values = file.read_float(name);
  const auto& shape = file.find(name)->shape;
  const std::size_t columns = shape.size() == 3 ? shape[2] : 1;
  std::vector<float> packed;
  for (std::size_t sample = 0; sample < texts.lengths.size(); ++sample) {
    const auto first = values.begin() + static_cast<std::ptrdiff_t>(sample * shape[1] * columns);
    packed.insert(packed.end(), first, first + static_cast<std::ptrdiff_t>(texts.lengths[sample] * columns));
  }
  return packed;
}

Values predicted_losses(LlamaEngine& engine, const RecordedTexts& texts) {
  Batch batch;
  texts.fill(batch);
  const Vector<float> losses("test::losses", texts.lengths.size());
  engine.task.model().predict(engine.pass(), batch, losses);
  return host_values(losses);
}

void LlamaReference::TearDown() { RecordProperty("worst", fmt::format("{:.2e}", worst_)); }

void LlamaReference::for_each_llama(
    const std::function<void(const fs::path& folder, const std::string& provider)>& check) {
  const auto folders = recorded_models("llama");
  ASSERT_FALSE(folders.empty());
  for (const fs::path& folder : folders) {
    for (const std::string& provider : exact_gemm_providers()) {
      SCOPED_TRACE(folder.string() + " with " + provider);
      check(folder, provider);
    }
  }
}

void LlamaReference::compare(std::span<const double> actual, std::span<const float> expected, const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  const double largest = largest_magnitude(expected);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double difference = std::fabs(actual[i] - static_cast<double>(expected[i]));
    worst_ = worse_of(worst_, difference / largest);
    ASSERT_LE(difference, llama_bound * largest)
        << what << " element " << i << ": " << actual[i] << ", not " << expected[i];
  }
}

void LlamaReference::compare(std::span<const float> actual, std::span<const float> expected, const std::string& what) {
  compare(Values(actual.begin(), actual.end()), expected, what);
}

void LlamaReference::compare_outputs(LlamaEngine& engine, const fs::path& folder) {
  const RecordedTexts& texts = engine.task.texts();
  const data::SafetensorsFile recorded(folder / "outputs.safetensors");
  compare(engine.logits(texts), without_padding(texts, recorded, "logits"), "logits");
  const Values losses = predicted_losses(engine, texts);
  const double sum = std::accumulate(losses.begin(), losses.end(), 0.0);
  compare(Values{sum / static_cast<double>(texts.predicted())}, recorded.read_float("loss"), "loss");
}

void LlamaReference::compare_steps(LlamaEngine& engine, const fs::path& folder) {
  const auto steps = read_recorded_json(folder / "steps.json");
  const std::size_t samples = engine.task.texts().lengths.size();
  const train::StepSettings settings{
      .largest_batch = samples, .limit = {.samples = samples}, .split = {.ranks = engine.ranks.size()}};
  train::TrainingStep step(engine.context(), settings);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const double learning_rate = steps[i]["learning_rate"].get<double>();
    const train::StepResult result = single_step(step, engine.space, i, learning_rate);
    compare(Values{result.loss}, std::vector{steps[i]["loss"].get<float>()}, "loss");
    compare(Values{result.gradient_norm}, std::vector{steps[i]["gradient_norm"].get<float>()}, "gradient norm");
  }
  const data::SafetensorsFile expected(folder / fmt::format("after-{}-steps.safetensors", steps.size()));
  for (std::size_t row = 0; row < engine.store.table().tensors().size(); ++row) {
    const std::string& name = engine.store.table().tensor(row).name;
    const auto values = expected.read_float(name);
    std::vector<float> actual(values.size());
    engine.mode->read_tensor(row, 0, actual);
    compare(std::span<const float>(actual), values, name);
  }
}

}  // namespace mylos::tests
