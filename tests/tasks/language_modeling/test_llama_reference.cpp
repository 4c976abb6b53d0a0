// Compares forward and backward passes and five AdamW steps with values recorded from PyTorch, for every recorded
// folder; and, for a model trained elsewhere with tied embeddings, logits, perplexity and greedy continuations.

#include "families/llama/llama_config.hpp"
#include "families/llama/llama_decoder.hpp"
#include "families/llama/llama_model.hpp"
#include "tests/families/llama/llama_logits.hpp"
#include "tests/support/arrays.hpp"
#include "tests/support/worst.hpp"
#include "tests/tasks/recorded_engine.hpp"

#include <fmt/format.h>

#include <cmath>

namespace mylos::tests {
namespace {

namespace fs = std::filesystem;
namespace names = nn::names;
using families::DecoderShape;

/// The folders of recorded members of the family, of those of which only a part is supervised, and of adapters.
const std::vector<std::string> decoders = {"llama", "decoders", "sft", "lora"};

/// False for the adapter of another family.
bool is_decoder(const fs::path& folder) {
  const auto config = read_recorded_json(model_folder(folder) / "config.json");
  return config["architectures"][0].get<std::string>().ends_with("ForCausalLM");
}

/// Samples packed without padding. A label is the next token if that is supervised; the last token of a sample has
/// none.
struct RecordedTexts {
  std::vector<std::size_t> lengths;
  std::vector<std::int32_t> tokens, labels;
  std::vector<double> weights;  ///< supervised tokens of each sample

  void add(std::span<const std::int32_t> ids) { add(ids, ids); }
  /// `own_labels` are the tokens themselves, and negative where a token is not supervised.
  void add(std::span<const std::int32_t> ids, std::span<const std::int32_t> own_labels) {
    lengths.push_back(ids.size());
    weights.push_back(0.0);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      tokens.push_back(ids[i]);
      labels.push_back(i + 1 < ids.size() ? std::max(own_labels[i + 1], -1) : -1);
      if (labels.back() >= 0) ++weights.back();
    }
  }
  double predicted() const { return std::accumulate(weights.begin(), weights.end(), 0.0); }
  RecordedSamples samples() const {
    return {lengths, weights, [texts = *this](std::span<const std::size_t> chosen, Batch& batch) {
              batch.set_indices(names::tokens, rows_of(texts.lengths, texts.tokens, chosen));
              const auto labels = rows_of(texts.lengths, texts.labels, chosen);
              batch.set(names::labels, std::span<const std::int32_t>(labels));
            }};
  }
};

/// Reads the texts of a recorded batch, without its padding.
RecordedTexts read_recorded_texts(const fs::path& batch_file) {
  const data::SafetensorsFile recorded(FileReader(), batch_file);
  const auto mask = recorded.read_integer("attention_mask"), ids = recorded.read_integer("input_ids");
  const auto labels = recorded.read_integer("labels");
  const std::size_t samples = recorded.find("input_ids")->shape[0], padded = recorded.find("input_ids")->shape[1];
  RecordedTexts texts;
  for (std::size_t sample = 0; sample < samples; ++sample) {
    std::vector<std::int32_t> tokens, own_labels;
    for (std::size_t i = sample * padded; i < (sample + 1) * padded && mask[i] != 0; ++i) {
      tokens.push_back(static_cast<std::int32_t>(ids[i]));
      own_labels.push_back(static_cast<std::int32_t>(labels[i]));
    }
    texts.add(tokens, own_labels);
  }
  return texts;
}

struct LlamaEngine : RecordedEngine<nn::Model> {
  LlamaEngine(const fs::path& folder, const std::string& provider, RecordedTexts packed,
              nn::Recompute recompute = nn::Recompute::none)
      : RecordedEngine(folder, provider,
                       with_adapter(folder, families::make_llama(shape_of(folder), Precision::float32)),
                       packed.samples(), recompute),
        texts(std::move(packed)),
        logits_model(with_adapter(folder, make_llama_logits(shape_of(folder), Precision::float32))) {}
  LlamaEngine(const fs::path& folder, const std::string& provider, nn::Recompute recompute = nn::Recompute::none)
      : LlamaEngine(folder, provider, read_recorded_texts(folder / "batch.safetensors"), recompute) {}

  static families::LlamaShape shape_of(const fs::path& folder) {
    return families::read_llama_config({FileReader(), model_folder(folder) / "config.json"});
  }
  /// Returns the logits (T, V) of these texts.
  Values logits(const RecordedTexts& of) {
    Batch batch;
    of.samples().assemble(batch);
    return host_values(logits_model->predict(pass(), batch, {}));
  }
  /// Returns the losses of these texts per sample, as computed in prediction.
  Values predicted_losses(const RecordedTexts& of) {
    Batch batch;
    of.samples().assemble(batch);
    const Vector<float> losses("test::losses", of.lengths.size());
    task.model().predict(pass(), batch, losses);
    return host_values(losses);
  }

  RecordedTexts texts;
  std::unique_ptr<nn::Model> logits_model;
};

/// Returns the rows of a recorded array (B, S, columns) that are not padding.
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

class LlamaReference : public RecordedReference {
 protected:
  /// Calls check(folder, provider) for each recorded member of the family with each exact GEMM provider.
  template <class Check>
  void for_each_decoder(const Check& check) {
    for_each_recorded(decoders, [&](const fs::path& folder, const std::string& provider) {
      if (is_decoder(folder)) check(folder, provider);
    });
  }
};

/// Returns the loss of each row, from batches in which only that row has a label.
Values token_losses(LlamaEngine& engine, const RecordedTexts& texts) {
  Values all;
  for (std::size_t row = 0; row < texts.tokens.size(); ++row) {
    RecordedTexts one = texts;
    for (std::size_t other = 0; other < one.labels.size(); ++other) {
      if (other != row) one.labels[other] = -1;
    }
    const Values losses = engine.predicted_losses(one);
    all.push_back(std::accumulate(losses.begin(), losses.end(), 0.0));
  }
  return all;
}

TEST_F(LlamaReference, LogitsAndLosses) {
  for_each_decoder([&](const fs::path& folder, const std::string& provider) {
    LlamaEngine engine(folder, provider);
    const RecordedTexts& texts = engine.texts;
    const data::SafetensorsFile recorded(FileReader(), folder / "outputs.safetensors");
    compare(engine.logits(texts), without_padding(texts, recorded, "logits"), "logits");
    const Values losses = engine.predicted_losses(texts);
    const double sum = std::accumulate(losses.begin(), losses.end(), 0.0);
    compare(Values{sum / texts.predicted()}, recorded.read_float("loss"), "loss");
    compare(token_losses(engine, texts), without_padding(texts, recorded, "token_losses"), "token losses");
  });
}

TEST_F(LlamaReference, Gradients) {
  for_each_decoder([&](const fs::path& folder, const std::string& provider) {
    LlamaEngine engine(folder, provider);
    compare_gradients(folder, engine);
  });
}

/// The weights of an adapter's base with the adapter in them.
TEST_F(LlamaReference, LogitsOfMergedAdapters) {
  for_each_decoder([&](const fs::path& folder, const std::string& provider) {
    if (model_folder(folder) == folder) return;
    LlamaEngine engine(model_folder(folder), provider, read_recorded_texts(folder / "batch.safetensors"));
    const ParameterTable& table = engine.store.table();
    const data::MergedAdapter adapter(FileReader(), folder / "adapter", read_recorded_adapter(folder),
                                      nn::linear_modules(table), specs_of(table));
    const data::SafetensorsFile base(FileReader(), model_folder(folder) / "model.safetensors");
    const data::SafetensorsFile recorded(FileReader(), folder / "merged.safetensors");
    for (std::size_t row = 0; row < table.tensors().size(); ++row) {
      const ParameterTensor& tensor = table.tensor(row);
      const std::vector<float> own = base.read_float(tensor.name);
      std::vector<float> values(own.size());
      adapter.merged({tensor.name, tensor.shape}, [&](std::size_t first, std::span<float> read) {
        std::copy_n(own.begin() + static_cast<std::ptrdiff_t>(first), read.size(), read.begin());
      })(0, values);
      compare(Values(values.begin(), values.end()), recorded.read_float(tensor.name), tensor.name);
      engine.strategy->write_tensor(row, values);
    }
    engine.strategy->sync_parameters(engine.space, ChangedUnits::all);
    const data::SafetensorsFile outputs(FileReader(), folder / "outputs.safetensors");
    compare(engine.logits(engine.texts), without_padding(engine.texts, outputs, "merged_logits"), "logits");
  });
}

TEST_F(LlamaReference, RecomputationChangesNoBit) {
  for_each_decoder([&](const fs::path& folder, const std::string& provider) {
    LlamaEngine kept(folder, provider);
    const Values losses = kept.train_once();
    for (const nn::Recompute recompute : {nn::Recompute::attention, nn::Recompute::layer}) {
      LlamaEngine engine(folder, provider, recompute);
      EXPECT_EQ(engine.train_once(), losses) << nn::to_string(recompute);
      EXPECT_EQ(engine.gradients(), kept.gradients()) << nn::to_string(recompute);
      EXPECT_LT(engine.arena.capacity(), kept.arena.capacity()) << nn::to_string(recompute);
    }
  });
}

TEST_F(LlamaReference, AdamWSteps) {
  for_each_decoder([&](const fs::path& folder, const std::string& provider) {
    LlamaEngine engine(folder, provider);
    // The gradients of slow frequencies nearly vanish.
    compare_steps(folder, engine, [](const std::string& name) { return name.ends_with("k_proj.bias"); });
  });
}

/// Returns the greedy continuation of a prompt through the key/value cache.
std::vector<std::int32_t> continue_through_cache(LlamaEngine& engine, const families::LlamaShape& shape,
                                                 std::span<const std::int32_t> prompt, std::size_t count) {
  const auto decoder = families::make_llama_decoder(shape, Precision::float32, engine.store.table());
  const DecoderShape sizes{.slots = 1, .positions = prompt.size() + count, .longest_prompt = prompt.size()};
  Arena planned;
  decoder->plan(planned, sizes);
  Arena arena("test::decoder", planned.peak());
  const nn::Pass pass{engine.space, engine.gemm, engine.store, engine.strategy->hooks(), arena};
  decoder->begin(pass, sizes);
  const auto likeliest = [](const Values& logits) {
    return static_cast<std::int32_t>(std::ranges::max_element(logits) - logits.begin());
  };
  std::vector<std::int32_t> ids{likeliest(host_values(decoder->prefill(pass, 0, prompt)))};
  while (ids.size() < count) {
    ids.push_back(likeliest(host_values(decoder->step(pass, std::vector<std::size_t>{0}, std::span(ids).last(1)))));
  }
  return ids;
}

/// Mistral's window of 8 begins to leave tokens behind in the prompt.
TEST_F(LlamaReference, GreedyContinuationsThroughTheCacheAreThoseWithoutIt) {
  constexpr std::size_t count = 30;
  for (const std::string& family : decoders) {
    for (const fs::path& folder : recorded_models(family)) {
      if (model_folder(folder) != folder) continue;  // generation merges adapters
      SCOPED_TRACE(folder.string());
      const families::LlamaShape shape = LlamaEngine::shape_of(folder);
      std::vector<std::int32_t> prompt;
      for (std::int32_t id = 10; id < 20; ++id) prompt.push_back(id);
      RecordedTexts longest;
      longest.add(std::vector<std::int32_t>(prompt.size() + count, 1));
      LlamaEngine engine(folder, gemm_providers().back(), longest);
      std::vector<std::int32_t> ids = prompt;
      while (ids.size() < prompt.size() + count) {
        RecordedTexts text;
        text.add(ids);
        const Values logits = engine.logits(text);
        const auto last = logits.end() - static_cast<std::ptrdiff_t>(shape.vocabulary);
        ids.push_back(static_cast<std::int32_t>(std::max_element(last, logits.end()) - last));
      }
      EXPECT_EQ(continue_through_cache(engine, shape, prompt, count),
                std::vector(ids.begin() + static_cast<std::ptrdiff_t>(prompt.size()), ids.end()));
    }
  }
}

/// The model of llama/stories260K, for texts of up to 200 tokens.
class RecordedStories : public LlamaReference {
 protected:
  void SetUp() override {
    if (!fs::is_directory(folder_)) GTEST_SKIP() << folder_ << " is not there";
  }
  LlamaEngine engine(const std::string& provider) const {
    RecordedTexts longest;
    const std::vector<std::int32_t> ones(200, 1);
    longest.add(ones, ones);
    return {folder_, provider, longest};
  }
  fs::path folder_ = shared_reference() / "llama" / "stories260K";
};

TEST_F(RecordedStories, LogitsOfPromptsAndGreedyContinuations) {
  LlamaEngine stories = engine(gemm_providers().back());
  const data::SafetensorsFile recorded(FileReader(), folder_ / "prompt_logits.safetensors");
  const auto expected = recorded.read_float(recorded.tensors().front().name);
  const auto json = read_recorded_json(folder_ / "greedy.json");
  std::vector<double> logits_of_prompts;
  for (const auto& prompt : json) {
    auto ids = prompt["prompt_ids"].get<std::vector<std::int32_t>>();
    std::vector<std::int32_t> greedy;
    const auto recorded_ids = prompt["ids"].get<std::vector<std::int32_t>>();
    while (greedy.size() < recorded_ids.size()) {
      RecordedTexts text;
      text.add(ids, ids);
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
    const auto ids = recorded["ids"].get<std::vector<std::int32_t>>();
    text.add(ids, ids);
    Values losses = token_losses(stories, text);
    losses.pop_back();  // the last token has no successor
    compare(losses, recorded["token_nll"].get<std::vector<float>>(), "token losses");
    const double mean = stories.predicted_losses(text).front() / text.predicted();
    compare(Values{std::exp(mean)}, std::vector{recorded["perplexity"].get<float>()}, "perplexity");
  }
}

}  // namespace
}  // namespace mylos::tests
