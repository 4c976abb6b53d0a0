// Compares forward and backward passes and five AdamW steps with values recorded from PyTorch, for every recorded
// folder; and, for a model trained elsewhere with tied embeddings, logits, perplexity and greedy continuations.

#include "tests/support/paths.hpp"
#include "tests/support/single_step.hpp"
#include "tests/tasks/language_modeling/llama_reference.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace mylos::tests {
namespace {

namespace fs = std::filesystem;

/// Returns the loss of each row, from batches in which only that row has a label.
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
    compare_outputs(engine, folder);
    compare(token_losses(engine, texts), without_padding(texts, recorded, "token_losses"), "token losses");
  });
}

/// The losses of the samples and the gradients of one training pass.
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
  for (std::size_t row = 0; row < engine.store.table().tensors().size(); ++row) {
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
      const std::string& name = engine.store.table().tensor(row).name;
      compare(gradients.rows[row], recorded.read_float(name), name);
    }
  });
}

TEST_F(LlamaReference, RecomputationChangesNoBit) {
  for_each_llama([&](const fs::path& folder, const std::string& provider) {
    LlamaEngine kept(folder, provider);
    const LlamaGradients expected = train_once(kept);
    for (const nn::Recompute recompute : {nn::Recompute::attention, nn::Recompute::layer}) {
      LlamaEngine engine(folder, provider, {.recompute = recompute});
      EXPECT_EQ(train_once(engine), expected) << nn::to_string(recompute);
      EXPECT_LT(engine.arena.capacity(), kept.arena.capacity()) << nn::to_string(recompute);
    }
  });
}

TEST_F(LlamaReference, AdamWSteps) {
  for_each_llama([&](const fs::path& folder, const std::string& provider) {
    LlamaEngine engine(folder, provider);
    compare_steps(engine, folder);
  });
}

TEST_F(LlamaReference, MicroBatchesGiveTheSameSteps) {
  for_each_llama([&](const fs::path& folder, const std::string& provider) {
    LlamaEngine one(folder, provider), other(folder, provider);
    const std::size_t samples = one.task.texts().lengths.size();
    train::TrainingStep whole(one.context(), {.largest_batch = samples, .limit = {.samples = samples}});
    train::TrainingStep split(other.context(), {.largest_batch = samples, .limit = {.samples = 1}});
    for (std::size_t i = 0; i < 5; ++i) {
      const train::StepResult a = single_step(whole, one.space, i, 1e-3);
      const train::StepResult b = single_step(split, other.space, i, 1e-3);
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
    losses.pop_back();  // the last token has no successor
    compare(losses, recorded["token_nll"].get<std::vector<float>>(), "token losses");
    const double mean = predicted_losses(stories, text).front() / static_cast<double>(text.predicted());
    compare(Values{std::exp(mean)}, std::vector{recorded["perplexity"].get<float>()}, "perplexity");
  }
}

}  // namespace
}  // namespace mylos::tests
