#include "tests/support/paths.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temporary.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

/// Compares mylos plan for language models that are known by their sizes with hand calculations.
namespace mylos::tests {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using Words = std::vector<std::string>;

json plan_of(Words words) {
  words.insert(words.begin(), "plan");
  words.emplace_back("--json");
  return json::parse(run_mylos(words).output);
}

/// A Llama with the sizes in its published config.json, and the number of parameters in its weight files.
struct KnownShape {
  const char* name;
  double parameters, vocabulary, hidden, feed_forward, layers, heads, key_value_heads;
};

class KnownModels : public testing::Test {
 protected:
  TemporaryDirectory directory_;
  EnvironmentVariable cache_{"XDG_CACHE_HOME", (directory_ / "cache").string()};
};

class PlannedShape : public KnownModels, public testing::WithParamInterface<KnownShape> {};

/// Computed from the sizes alone, in bytes, for micro-batches of 4 sequences of 512 tokens in bfloat16.
TEST_P(PlannedShape, TakesWhatIsComputedByHand) {
  const auto& [name, parameters, vocabulary, hidden, feed_forward, layers, heads, key_value_heads] = GetParam();
  const double head_size = hidden / heads, keys = key_value_heads * head_size, qkv = hidden + 2 * keys;
  const double layer = hidden * qkv + hidden * hidden + 3 * hidden * feed_forward + 2 * hidden;
  const double head = vocabulary * hidden + hidden, largest_unit = std::max(layer, head);
  EXPECT_EQ(vocabulary * hidden + layers * layer + head, parameters) << "embeddings, layers, norm and head";

  constexpr double element = 2, tokens = 4 * 512;
  // A layer's input, and its other saved activations: query, key and value; context; the second norm's input; gate and
  // up; and, in float, each head's log-sum-exp and two inverse norms.
  const double input = element * hidden;
  const double kept = element * (qkv + 2 * hidden + 2 * feed_forward) + 4 * heads + 8;
  // Cosines and sines, the final norm, a gradient for the layers, two alternating ones, row sums, and the loss.
  const double once = 4 * head_size + 2 * element * hidden + 4 + element * hidden +
                      element * std::max(feed_forward, qkv) + 4 * heads + 4;
  const double column_sums = 3 * 4 * hidden * tokens / 32;
  // Chunks of 128 MiB of float logits, in multiples of 128 rows, with their gradient.
  const double piece = std::min(tokens, std::max(128.0, std::floor((1 << 25) / vocabulary / 128) * 128));
  const double logits = piece * vocabulary * (4 + element);

  for (const char* recompute : {"none", "layer"}) {
    const json plan =
        plan_of({"--model", name, "--gpu", "h200", "--gpus", "16", "--nodes", "4", "--batch", "64", "--max-length",
                 "512", "--precision", "bfloat16", "--micro-batch", "4", "--recompute", recompute});
    const bool keeps = std::string(recompute) == "none";
    const double activations =
        tokens * ((keeps ? layers * (input + kept) : layers * input + kept) + once) + column_sums + logits;
    std::map<std::string, json> memory;
    for (const json& strategy : plan["modes"]) memory[strategy["mode"]] = strategy["memory"];
    const auto expect = [&](const char* strategy, const char* part, double bytes) {
      EXPECT_NEAR(memory[strategy][part].get<double>() / bytes, 1.0, 1e-3)
          << strategy << " " << part << " " << recompute;
    };
    // bfloat16 values with float master weights; float gradients; AdamW's two moments.
    expect("replicated", "values", 6 * parameters);
    expect("replicated", "gradients", 4 * parameters);
    expect("replicated", "optimizer", 8 * parameters);
    // 1/16 of the master weights, and two whole units at a time.
    expect("sharded", "values", 4 * parameters / 16 + 2 * element * largest_unit);
    expect("sharded", "gradients", 4 * (parameters / 16 + 2 * largest_unit));
    expect("sharded", "optimizer", 8 * parameters / 16);
    for (const char* strategy : {"replicated", "sharded"}) {
      EXPECT_NEAR(memory[strategy]["activations"].get<double>() / activations, 1.0, 5e-3)
          << strategy << " " << recompute;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Of, PlannedShape,
                         testing::Values(KnownShape{"codellama-7b", 6'738'546'688, 32016, 4096, 11008, 32, 32, 32},
                                         KnownShape{"codellama-13b", 13'016'028'160, 32016, 5120, 13824, 40, 40, 40},
                                         KnownShape{"codellama-34b", 33'743'970'304, 32000, 8192, 22016, 48, 64, 8},
                                         KnownShape{"llama-2-7b", 6'738'415'616, 32000, 4096, 11008, 32, 32, 32},
                                         KnownShape{"llama-3-8b", 8'030'261'248, 128256, 4096, 14336, 32, 32, 8},
                                         KnownShape{"tinyllama-1.1b", 1'100'048'384, 32000, 2048, 5632, 22, 32, 4}),
                         [](const auto& of) {
                           std::string name = of.param.name;
                           std::ranges::replace_if(
                               name, [](char letter) { return letter == '-' || letter == '.'; }, '_');
                           return name;
                         });

/// A typical question: 4 GPUs with 80 GB.
TEST_F(KnownModels, SaysTheLargestMicroBatchOfEachModeAndRecomputation) {
  const Words words = {"--model", "codellama-7b", "--gpu",        "a100-80", "--gpus",      "4",
                       "--batch", "64",           "--max-length", "512",     "--precision", "bfloat16"};
  const json plan = plan_of(words);
  const json replicated = plan["modes"][0], sharded = plan["modes"][3];
  EXPECT_EQ(replicated["fits"], false);
  EXPECT_EQ(sharded["fits"], true);
  EXPECT_THAT(plan["recommended"].get<std::string>(), HasSubstr("--model codellama/CodeLlama-7b-hf"));
  EXPECT_GT(replicated["memory"]["peak"].get<double>(), plan["memory"].get<double>());
  EXPECT_EQ(replicated["largest_micro_batches"], json({{"none", 0}, {"attention", 0}, {"layer", 0}}));
  const json largest = sharded["largest_micro_batches"];
  EXPECT_LT(largest["none"], largest["attention"]);
  EXPECT_LT(largest["attention"], largest["layer"]);
  EXPECT_EQ(largest["none"], sharded["largest_micro_batch"]);
  Words text = words;
  text.insert(text.begin(), "plan");
  const std::string output = run_mylos(text).output;
  EXPECT_THAT(output, HasSubstr("replicated           does not fit   does not fit   does not fit\n"));
  EXPECT_THAT(output, HasSubstr(fmt::format("{} ({})", largest["layer"].get<int>(), 4 * largest["layer"].get<int>())));
  EXPECT_THAT(output, HasSubstr("replicated: memory: "));
  EXPECT_THAT(output, HasSubstr(" GiB are needed (values 37.65, gradients 25.10, optimizer 50.21, "));
  EXPECT_THAT(output, HasSubstr("78.33 GiB are free; it fits with --mode sharded"));

  // The reported largest micro-batch fits, and one more sample does not.
  const auto fits = [&](const char* recompute, std::size_t samples) {
    const std::string micro_batch = std::to_string(samples), batch = std::to_string(4 * samples);
    Words all = {"plan",         "--model", "codellama-7b", "--gpu",         "a100-80",     "--gpus",  "4",
                 "--max-length", "512",     "--precision",  "bf16",          "--recompute", recompute, "--mode",
                 "sharded",      "--batch", batch,          "--micro-batch", micro_batch};
    return run_mylos(all).exit_code == 0;
  };
  for (const char* recompute : {"none", "attention", "layer"}) {
    const auto most = largest[recompute].get<std::size_t>();
    EXPECT_TRUE(fits(recompute, most)) << recompute;
    EXPECT_FALSE(fits(recompute, most + 1)) << recompute;
  }
}

/// A table of docs/language-models.md shows the memory and micro-batches that are planned.
TEST_F(KnownModels, PagesShowThePlannedFigures) {
  const Words words = {"--model", "codellama-7b", "--gpu",        "a100-80", "--gpus",      "4",
                       "--batch", "64",           "--max-length", "512",     "--precision", "bfloat16"};
  Words recomputed = joined(words, {"--recompute", "layer"});
  const json plan = plan_of(words);
  const std::string page = read_file(source_dir() / "docs/language-models.md");
  constexpr double gibibyte = 1 << 30;
  // A row without the cell for the mode, which may say more.
  const auto memory_row = [&](const json& strategy, const char* recompute) {
    const json& memory = strategy["memory"];
    std::string parts;
    for (const char* part : {"values", "gradients", "optimizer", "activations"}) {
      parts += fmt::format(" {:.2f} |", memory[part].get<double>() / gibibyte);
    }
    const bool is_cut = strategy["micro_batch"] != strategy["asked_micro_batch"];
    return fmt::format("| {:.2f} GiB{} |{} {} | {} |\n", memory["peak"].get<double>() / gibibyte,
                       is_cut ? ", at micro-batch " + strategy["micro_batch"].dump() : "", parts,
                       strategy["fits"] == true ? "yes" : "no", strategy["largest_micro_batches"][recompute].dump());
  };
  for (const json& strategy : plan["modes"]) {
    EXPECT_THAT(page,
                HasSubstr(fmt::format("| `{}` {}", strategy["mode"].get<std::string>(), memory_row(strategy, "none"))));
  }
  const json sharded = plan_of(recomputed)["modes"][3];
  EXPECT_THAT(page, HasSubstr("| `sharded`, `--recompute layer` " + memory_row(sharded, "layer")));
  const std::string obstacle = plan["modes"][0]["obstacle"];
  const std::size_t end = obstacle.find(" are free"), begin = obstacle.rfind(", ", end) + 2;
  EXPECT_THAT(page, HasSubstr("a GPU of 80 GiB has " + obstacle.substr(begin, end - begin)));
}

TEST_F(KnownModels, OddNumbersOfACluster) {
  const auto with = [](Words more) {
    more.insert(more.begin(), {"plan", "--model", "codellama-7b", "--gpu", "a100-80", "--precision", "bfloat16"});
    return run_mylos(more);
  };
  EXPECT_THAT(with({"--gpus", "4", "--nodes", "2"}).output, HasSubstr("4 x a100-80 on 2 nodes"));
  EXPECT_THAT(with({"--gpus", "4", "--nodes", "2"}).output, HasSubstr("\nhybrid "));
  const ProgramRun alone = with({"--gpus", "1", "--batch", "64"});
  EXPECT_EQ(alone.exit_code, 1);
  EXPECT_THAT(alone.output, HasSubstr("it fits on 2 GPUs with --mode sharded-gradients, or on h200"));
  EXPECT_THAT(alone.output, HasSubstr("largest micro-batch, in sequences as long as the longest\n"));
  EXPECT_EQ(with({"--gpus", "4", "--batch", "2"}).exit_code, 0) << "fewer sequences than ranks";
  const ProgramRun longer = with({"--gpus", "4", "--max-length", "20000"});
  EXPECT_EQ(longer.exit_code, 2);
  EXPECT_EQ(longer.errors,
            "mylos: error: --max-length 20000: expected at most 16384, the positions that codellama-7b has\n");
}

}  // namespace
}  // namespace mylos::tests
