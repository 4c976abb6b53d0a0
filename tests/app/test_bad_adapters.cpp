#include "tests/app/lora_runs.hpp"

#include <algorithm>

/// Adapters that are refused, and bases that have changed or moved.
namespace mylos::tests {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

class BadAdapters : public LoraRuns {
 protected:
  void SetUp() override {
    LoraRuns::SetUp();
    train_adapters();
    fs::copy(run_ / "best", adapter_);
  }

  /// Expects that train, eval and merge refuse the directory, and restores it.
  void expect_refused_by_all(const std::string& what) const {
    expect_refused(run_mylos(train_words(output_, {"--adapter", adapter_, "--steps", "1"})), what);
    expect_refused(run_mylos({"eval", "--model", adapter_, "--data", dev_, "--output", directory_ / "scores"}), what);
    expect_refused(run_mylos({"merge", "--model", base_, "--adapter", adapter_, "--output", merged_}), what);
    EXPECT_FALSE(fs::exists(output_ / "best"));
    EXPECT_FALSE(fs::exists(merged_));
    fs::copy(run_ / "best", adapter_, fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  }
  void expect_refused_with(const std::string& key, const json& value, const std::string& what) const {
    json config = read_json(adapter_ / "adapter_config.json");
    config[key] = value;
    write_file(adapter_ / "adapter_config.json", config.dump());
    expect_refused_by_all("adapter_config.json: " + what);
  }

  fs::path adapter_ = directory_ / "adapter", output_ = directory_ / "output";
};

TEST_F(BadAdapters, WithOtherSettings) {
  expect_refused_with("r", 17, "r 17 of model.layers.0.self_attn.q_proj is above 16, the smaller side of its weight");
  expect_refused_with("use_dora", true, "use_dora = true is not supported; it must be false");
}

TEST_F(BadAdapters, OfAnotherModel) {
  write_tiny_llama(directory_ / "other", {.hidden = 8});
  const fs::path file = adapter_ / "adapter_config.json";
  json config = read_json(file);
  config["base_model_name_or_path"] = (directory_ / "other").string();
  write_file(file, config.dump());
  const std::string other = "adapter_config.json: its base is " + (directory_ / "other").string() + ", and " +
                            base_.string() + " is another model; give the base with --model";
  expect_refused(run_mylos({"merge", "--model", base_, "--adapter", adapter_, "--output", merged_}), other);
  config.erase("base_model_name_or_path");
  write_file(file, config.dump());
  expect_refused(run_mylos({"merge", "--model", adapter_, "--output", merged_}),
                 "base_model_name_or_path names no model; give it as --model");
  fs::copy(base_ / "model.safetensors", directory_ / "other");
  expect_refused(run_mylos({"merge", "--model", directory_ / "other", "--adapter", adapter_, "--output", merged_}),
                 "q_proj.lora_A.weight\" has shape (2, 16), the model of adapter_config.json needs (2, 8)");
}

TEST_F(BadAdapters, WithOtherTensors) {
  const fs::path file = adapter_ / "adapter_model.safetensors";
  const std::string bytes = read_file(file);
  write_file(file, bytes.substr(0, bytes.size() - 8));
  if (!mpiexec().empty()) {
    const ProgramRun run =
        run_on(2, train_words(output_, {"--adapter", adapter_, "--steps", "1", "--mode", "sharded"}));
    expect_refused(run, "adapter_model.safetensors: tensor \"base_model.model.model.layers.1.self_attn.v_proj.lora_B");
  }
  expect_refused_by_all("adapter_model.safetensors: tensor \"base_model.model.model.layers.1.self_attn.v_proj.lora_B");
  fs::remove(file);
  expect_refused_by_all("has no adapter_model.safetensors");
}

TEST_F(BadAdapters, OfOptions) {
  const auto refuse = [&](const Words& more, const std::string& what, int exit_code = 1) {
    expect_refused(run_mylos(train_words(output_, joined({"--steps", "1"}, more))), what, exit_code);
  };
  refuse({"--lora-rank", "17"}, "--lora-rank 17 of model.layers.0.self_attn.q_proj is above 16");
  refuse({"--lora-rank", "2", "--lora-targets", "q,gone"}, "--lora-targets \"gone\" matches no module; the linear");
  refuse({"--lora-rank", "2", "--lora-targets", ".*gone"}, "--lora-targets \".*gone\" matches no module; the linear");
  refuse({"--lora-rank", "2", "--lora-targets", "q,all-linear"}, "--lora-targets q,all-linear: expected names", 2);
  refuse({"--lora-rank", "2", "--lora-targets", "q,"}, "--lora-targets q,: expected names separated by commas", 2);
  refuse({"--lora-rank", "2", "--lora-train", "gone"}, "--lora-train \"gone\" is no module of this model");
  refuse({"--lora-rank", "2", "--adapter", adapter_}, "--lora-rank and --adapter exclude each other", 2);
  refuse({"--lora-rank", "2", "--freeze", "body"}, "--lora-rank and --freeze exclude each other", 2);
  refuse({"--adapter", adapter_, "--freeze", "body"}, "--adapter and --freeze exclude each other", 2);
  refuse({"--lora-alpha", "4"},
         "--lora-alpha needs --lora-rank: only new adapters take it, and those of --adapter have their own in "
         "adapter_config.json",
         2);
  refuse({"--lora-rank", "2", "--lora-alpha", "1e30"}, "--lora-alpha 1e30: expected a number above 0 and below 1e+30",
         2);
  refuse({"--lora-targets", "k"}, "--lora-targets needs --lora-rank: only new adapters take it", 2);
  refuse({"--adapter", base_}, "--adapter " + base_.string() + ": neither an adapter (no adapter_config.json) nor");
  Words words = train_words(output_, {"--steps", "1", "--lora-rank", "2"});
  std::ranges::replace(words, base_.string(), adapter_.string());
  expect_refused(run_mylos(words), "is an adapter, which excludes --lora-rank; give its base as --model", 2);
  std::ranges::replace(words, adapter_.string(), model_.string());
  expect_refused(run_mylos(words), model_.string() + ": has no weights");
  expect_refused(run_mylos({"merge", "--model", base_, "--output", output_}), "merge needs --adapter", 2);
  expect_refused(run_mylos({"merge", "--model", adapter_, "--output", run_}), "already exists; choose a new directory");
}

TEST_F(BadAdapters, OfAdaptersAndOfTiedEmbeddings) {
  const fs::path file = adapter_ / "adapter_config.json";
  json config = read_json(file);
  config["base_model_name_or_path"] = adapter_.string();
  write_file(file, config.dump());
  expect_refused(run_mylos({"merge", "--model", adapter_, "--output", merged_}), "is an adapter; merge that one first");
  json sizes = read_json(base_ / "config.json");
  sizes["tie_word_embeddings"] = true;
  write_file(base_ / "config.json", sizes.dump());
  expect_refused(run_mylos(train_words(output_, {"--steps", "1", "--lora-rank", "2", "--lora-train", "embed_tokens"})),
                 "--lora-train: model.embed_tokens.weight is also the weight of the output layer (tied embeddings)");
  config["modules_to_save"] = {"embed_tokens"};
  write_file(file, config.dump());
  const std::string tied = "adapter_config.json: modules_to_save: model.embed_tokens.weight is also the weight of the";
  expect_refused(run_mylos({"merge", "--model", base_, "--adapter", adapter_, "--output", merged_}), tied);
  expect_refused(
      run_mylos({"eval", "--model", base_, "--adapter", adapter_, "--data", dev_, "--output", directory_ / "scores"}),
      tied);
}

/// The settings of an adapter are in its directory, and not in the run's.
TEST_F(BadAdapters, ChangedBeforeARunGoesOn) {
  const Words words = train_words(output_, {"--adapter", adapter_, "--checkpoint-every", "1", "--steps"});
  ASSERT_EQ(run_mylos(joined(words, {"1"})).exit_code, 0);
  json config = read_json(adapter_ / "adapter_config.json");
  config["lora_alpha"] = 40;
  write_file(adapter_ / "adapter_config.json", config.dump());
  expect_refused(run_mylos(joined(words, {"2", "--extend"})),
                 "or the settings of the adapters are others; restore them");
}

TEST_F(BadAdapters, MovedBeforeARunGoesOn) {
  const Words first = {"--adapter", adapter_, "--checkpoint-every", "1", "--steps", "1"};
  ASSERT_EQ(run_mylos(train_words(output_, first)).exit_code, 0);
  const Words steps = {"--checkpoint-every", "1", "--extend", "--steps"};
  const fs::path moved = directory_ / "moved";
  fs::rename(adapter_, moved);
  const ProgramRun run = run_mylos(train_words(output_, joined({"--adapter", moved}, joined(steps, {"2"}))));
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.errors, HasSubstr("goes on after step 1, from "));
  json config = read_json(moved / "adapter_config.json");
  config["lora_alpha"] = 40;
  write_file(moved / "adapter_config.json", config.dump());
  expect_refused(run_mylos(train_words(output_, joined({"--adapter", moved}, joined(steps, {"3"})))),
                 "or the settings of the adapters are others; restore them");
  expect_refused(run_mylos(train_words(output_, joined(steps, {"3"}))), "with other options: adapter ", 2);
  // A run without --adapter does not get one.
  expect_refused(run_mylos(train_words(directory_ / "first", joined({"--adapter", moved}, joined(steps, {"3"})))),
                 "with other options: model ", 2);
}

/// Also on two ranks, which end.
TEST_F(BadAdapters, OfARunThatGoesOn) {
  const auto refuse = [&](const Words& more, const std::string& what, int exit_code, bool on_ranks = false) {
    const Words words = train_words(run_, joined({"--steps", "6", "--extend", "--checkpoint-every", "2"}, more));
    expect_refused(run_mylos(words), what, exit_code);
    if (on_ranks && !mpiexec().empty()) expect_refused(run_on(2, words), what, exit_code);
  };
  refuse({"--lora-rank", "3"}, "with other options: lora-rank 2, now 3;", 2, true);
  refuse({"--lora-rank", "2", "--lora-alpha", "1"}, "with other options: lora-alpha unset, now 1.0;", 2);
  refuse({}, "with other options: lora-rank 2, now unset; lora-targets q,v, now unset;", 2);
  const fs::path weights = base_ / "model.safetensors";
  const std::string bytes = read_file(weights);
  std::string changed = bytes;
  changed[changed.size() - 2] ^= 1;
  write_file(weights, changed);
  refuse({"--lora-rank", "2"}, "its adapters belong to the model in " + base_.string() + ", and the weights in ", 1,
         true);
  fs::rename(base_, directory_ / "moved");
  refuse({"--lora-rank", "2"}, "no directory " + base_.string(), 1);
  expect_refused(run_mylos({"eval", "--model", run_, "--data", dev_, "--output", output_}),
                 "adapter_config.json: its base is not here: no directory " + base_.string());
  const std::string before = base_.string();
  base_ = directory_ / "moved";
  refuse({"--lora-rank", "2"}, "the model in " + before + ", and the weights in " + base_.string(), 1);
  write_file(base_ / "model.safetensors", bytes);
  const ProgramRun run = train({"--lora-rank", "2", "--steps", "6", "--extend", "--checkpoint-every", "2"});
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_EQ(read_json(run_ / "last" / "adapter_config.json")["base_model_name_or_path"], base_.string());
}

/// A checkpoint knows its base, and a sum that is not finite is no model. Leftovers of a killed export go.
TEST_F(BadAdapters, AreNotMerged) {
  const fs::path output = directory_ / "merged", other = directory_ / "other",
                 killed = directory_ / "merged-adapter.partial-0123456789abcdef";
  fs::copy(base_, other);
  std::string bytes = read_file(other / "model.safetensors");
  bytes[bytes.size() - 2] ^= 1;
  write_file(other / "model.safetensors", bytes);
  const Words merge = {"checkpoint", "export", run_, "--merge", "--output", output};
  expect_refused(run_mylos(joined(merge, {"--model", other})), "its adapters belong to the model in " + base_.string() +
                                                                   ", and the weights in " + other.string() +
                                                                   " or the settings");
  fs::create_directory(killed);
  EXPECT_EQ(run_mylos(merge).exit_code, 0);
  EXPECT_FALSE(fs::exists(killed));

  bytes = read_file(adapter_ / "adapter_model.safetensors");
  bytes.replace(bytes.size() - 4, 4, "\xff\xff\xff\x7f", 4);
  write_file(adapter_ / "adapter_model.safetensors", bytes);
  expect_refused(run_mylos({"merge", "--model", adapter_, "--output", directory_ / "nan"}),
                 "is not finite with the adapter in");
  expect_refused(run_mylos({"eval", "--model", adapter_, "--data", dev_, "--output", directory_ / "scores"}),
                 " with " + adapter_.string() + ": the model's outputs are not finite");
}

TEST_F(BadAdapters, MergedOnAFullDisk) {
  for (const Words& words : {Words{"merge", "--model", adapter_}, Words{"checkpoint", "export", run_, "--merge"}}) {
    const fs::path disk = directory_ / words[0];
    const auto run = run_on_small_disk(disk, 16, R"("$@"; code=$?; ls -A "$disk"; exit $code)",
                                       joined(words, {"--output", disk / "out"}));
    if (!run) GTEST_SKIP() << "this user may not mount a file system";
    expect_refused(*run, "No space left on device");
    EXPECT_EQ(run->output, "") << words[0];
  }
}

}  // namespace
}  // namespace mylos::tests
