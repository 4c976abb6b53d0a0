// Forward, backward and five AdamW steps against values recorded from PyTorch, for every recorded folder; a model that
// was trained elsewhere, with tied embeddings: logits, perplexity and greedy continuations.

#include "tests/support/paths.hpp"
#include "tests/support/worst.hpp"
#include "tests/tasks/language_modeling/recorded_llama.hpp"

#include "tests/support/arrays.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numeric>

namespace mylos::tests {
namespace {

namespace fs = std::filesystem;

/// What the numbers are held to, relative to the largest of the array.
constexpr double llama_bound = 1e-5;

/// Recorded folders, each with the batch that it was run on.
std::vector<fs::path> recorded_llamas() {
  std::vector<fs::path> folders;
  const fs::path all = shared_reference() / "llama";
  if (!fs::is_directory(all)) return folders;
  for (const auto& entry : fs::directory_iterator(all)) {
    if (fs::exists(entry.path() / "batch.safetensors")) folders.push_back(entry.path());
  }
  std::ranges::sort(folders);
  return folders;
}

nlohmann::json read_recorded_json(const fs::path& path) {
  std::ifstream file(path);
  return nlohmann::json::parse(file);
}

double largest_magnitude(std::span<const float> values) {
  double largest = 0.0;
  for (const float value : values) largest = std::max(largest, std::fabs(static_cast<double>(value)));
  return largest;
}

/// The largest difference of a test is one of its properties.
class LlamaReference : public ::testing::Test {
 protected:
  void TearDown() override { RecordProperty("worst", fmt::format("{:.2e}", worst_)); }
  /// Runs `check` for each folder with each provider.
  template <class Check>
  void for_each_llama(const Check& check) {
    const auto folders = recorded_llamas();
    if (folders.empty())
      GTEST_SKIP() << shared_reference() / "llama"
                   << " has no recorded run";
    for (const fs::path& folder : folders) {
      for (const std::string& provider : exact_gemm_providers()) {
        SCOPED_TRACE(folder.string() + " with " + provider);
        check(folder, provider);
      }
    }
  }
  /// |actual - expected| <= bound * the largest of expected, element by element.
  template <class Actual>
  void compare(const Actual& actual, std::span<const float> expected, const std::string& what) {
    ASSERT_EQ(actual.size(), expected.size()) << what;
    const double largest = largest_magnitude(expected);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const double difference = std::fabs(static_cast<double>(actual[i]) - static_cast<double>(expected[i]));
      worst_ = worse_of(worst_, difference / largest);
      ASSERT_LE(difference, llama_bound * largest)
          << what << " element " << i << ": " << actual[i] << ", not " << expected[i];
    }
  }
  double worst_ = 0.0;
};

/// Rows of a recorded (B, S, columns) array that are not padding.
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

/// The losses of these texts, sample by sample, as prediction gives them.
Values predicted_losses(LlamaEngine& engine, const RecordedTexts& texts) {
  Batch batch;
  texts.fill(batch);
  const Vector<float> losses("test::losses", texts.lengths.size());
  engine.task.model().predict(engine.pass(), batch, losses);
  return host_values(losses);
}

/// The loss of each row: of a batch in which this row alone has a label.
Values token_losses(LlamaEngine& engine, const RecordedTexts& texts) {
  Values all;
  for (std::size_t row = 0; row < texts.tokens.size(); ++row) {
    RecordedTexts one = texts;
    for (std::size_t other = 0; other < one.labels.size(); ++other) {
      if (other != row) one.labels[other] = -1;
    }
    const Values losses = predicted_losses(engine, one);
    all.push_back(std::accumulate(losses.begin(), losses.end(), 0.0));
  }
  return all;
}

TEST_F(LlamaReference, LogitsAndLosses) {
  for_each_llama([&](const fs::path& folder, const std::string& provider) {
    LlamaEngine engine(folder, provider);
    const RecordedTexts& texts = engine.task.texts();
    const data::SafetensorsFile recorded(folder / "outputs.safetensors");
    compare(engine.logits(texts), without_padding(texts, recorded, "logits"), "logits");
    compare(token_losses(engine, texts), without_padding(texts, recorded, "token_losses"), "token losses");
    const Values losses = predicted_losses(engine, texts);
    const double sum = std::accumulate(losses.begin(), losses.end(), 0.0);
    compare(Values{sum / static_cast<double>(texts.predicted())}, recorded.read_float("loss"), "loss");
  });
}

/// Losses of the samples and gradients of one training pass.
struct LlamaGradients {
  Values losses;
  std::vector<Values> rows;
  bool operator==(const LlamaGradients&) const = default;
};

LlamaGradients train_once(LlamaEngine& engine) {
  const RecordedTexts& texts = engine.task.texts();
  Batch batch;
  texts.fill(batch);
  engine.mode->begin_step(engine.space);
  const Vector<float> losses("test::losses", texts.lengths.size());
  engine.task.model().train(engine.pass(), batch, 1.0f / static_cast<float>(texts.predicted()), losses);
  LlamaGradients result{host_values(losses), {}};
  for (std::size_t row = 0; row < engine.store.table().rows().size(); ++row) {
    result.rows.push_back(host_values(engine.store.gradient(row)));
  }
  return result;
}

TEST_F(LlamaReference, Gradients) {
  for_each_llama([&](const fs::path& folder, const std::string& provider) {
    LlamaEngine engine(folder, provider);
    const data::SafetensorsFile recorded(folder / "gradients.safetensors");
    const LlamaGradients gradients = train_once(engine);
    EXPECT_EQ(recorded.tensors().size(), gradients.rows.size());
    for (std::size_t row = 0; row < gradients.rows.size(); ++row) {
      const std::string& name = engine.store.table().row(row).name;
      compare(gradients.rows[row], recorded.read_float(name), name);
    }
  });
}

TEST_F(LlamaReference, RecomputationChangesNoBit) {
  for_each_llama([&](const fs::path& folder, const std::string& provider) {
    LlamaEngine kept(folder, provider);
    const LlamaGradients expected = train_once(kept);
    for (const nn::Recompute recompute : {nn::Recompute::attention, nn::Recompute::layer}) {
      LlamaEngine engine(folder, provider, recompute);
      EXPECT_EQ(train_once(engine), expected) << nn::to_string(recompute);
      EXPECT_LT(engine.arena.capacity(), kept.arena.capacity()) << nn::to_string(recompute);
    }
  });
}

TEST_F(LlamaReference, AdamWSteps) {
  for_each_llama([&](const fs::path& folder, const std::string& provider) {
    LlamaEngine engine(folder, provider);
    const auto steps = read_recorded_json(folder / "steps.json");
    const std::size_t samples = engine.task.texts().lengths.size();
    train::TrainingStep step(engine.context(), {.largest_batch = samples, .limit = {.samples = samples}});
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const double learning_rate = steps[i]["learning_rate"].get<double>();
      const train::StepResult result = step.run(engine.space, {.step = i, .update = i, .learning_rate = learning_rate});
      compare(Values{result.loss}, std::vector{steps[i]["loss"].get<float>()}, "loss");
      compare(Values{result.gradient_norm}, std::vector{steps[i]["gradient_norm"].get<float>()}, "gradient norm");
    }
    const data::SafetensorsFile expected(folder / fmt::format("after-{}-steps.safetensors", steps.size()));
    for (std::size_t row = 0; row < engine.store.table().rows().size(); ++row) {
      const std::string& name = engine.store.table().row(row).name;
      const auto values = expected.read_float(name);
      std::vector<float> actual(values.size());
      engine.mode->read_row(row, 0, actual);
      compare(actual, values, name);
    }
  });
}

TEST_F(LlamaReference, MicroBatchesGiveTheSameSteps) {
  for_each_llama([&](const fs::path& folder, const std::string& provider) {
    LlamaEngine one(folder, provider), other(folder, provider);
    const std::size_t samples = one.task.texts().lengths.size();
    train::TrainingStep whole(one.context(), {.largest_batch = samples, .limit = {.samples = samples}});
    train::TrainingStep split(other.context(), {.largest_batch = samples, .limit = {.samples = 1}});
    for (std::size_t i = 0; i < 5; ++i) {
      const train::StepCourse course{.step = i, .update = i, .learning_rate = 1e-3};
      const train::StepResult a = whole.run(one.space, course), b = split.run(other.space, course);
      compare(Values{b.loss}, std::vector{static_cast<float>(a.loss)}, "loss");
      compare(Values{b.gradient_norm}, std::vector{static_cast<float>(a.gradient_norm)}, "gradient norm");
    }
  });
}

/// The model of llama/stories260K, for texts of up to 200 tokens.
class RecordedStories : public LlamaReference {
 protected:
  void SetUp() override {
    if (!fs::is_directory(folder_)) GTEST_SKIP() << folder_ << " is not there";
  }
  LlamaEngine engine(const std::string& provider) const {
    RecordedTexts longest;
    longest.add(std::vector<std::int32_t>(200, 1));
    return {folder_, provider, longest};
  }
  fs::path folder_ = shared_reference() / "llama" / "stories260K";
};

TEST_F(RecordedStories, LogitsOfPromptsAndGreedyContinuations) {
  LlamaEngine stories = engine(gemm_providers().back());
  const data::SafetensorsFile recorded(folder_ / "prompt_logits.safetensors");
  const auto expected = recorded.read_float(recorded.tensors().front().name);
  const auto json = read_recorded_json(folder_ / "greedy.json");
  std::vector<double> logits_of_prompts;
  for (const auto& prompt : json) {
    auto ids = prompt["prompt_ids"].get<std::vector<std::int32_t>>();
    std::vector<std::int32_t> greedy;
    const auto recorded_ids = prompt["ids"].get<std::vector<std::int32_t>>();
    while (greedy.size() < recorded_ids.size()) {
      RecordedTexts text;
      text.add(ids);
      const Values logits = stories.logits(text);
      const auto last = logits.end() - 512;
      if (greedy.empty()) logits_of_prompts.insert(logits_of_prompts.end(), last, logits.end());
      greedy.push_back(static_cast<std::int32_t>(std::max_element(last, logits.end()) - last));
      ids.push_back(greedy.back());
    }
    EXPECT_EQ(greedy, recorded_ids);
  }
  compare(logits_of_prompts, expected, "logits");
}

TEST_F(RecordedStories, LossOfEachTokenAndPerplexity) {
  const auto recorded = read_recorded_json(folder_ / "perplexity.json");
  for (const std::string& provider : exact_gemm_providers()) {
    SCOPED_TRACE(provider);
    LlamaEngine stories = engine(provider);
    RecordedTexts text;
    text.add(recorded["ids"].get<std::vector<std::int32_t>>());
    Values losses = token_losses(stories, text);
    losses.pop_back();  // nothing follows the last token
    compare(losses, recorded["token_nll"].get<std::vector<float>>(), "token losses");
    const double mean = predicted_losses(stories, text).front() / static_cast<double>(text.predicted());
    compare(Values{std::exp(mean)}, std::vector{recorded["perplexity"].get<float>()}, "perplexity");
  }
}

}  // namespace
}  // namespace mylos::tests
