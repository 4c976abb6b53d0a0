#include "data/huggingface/safetensors.hpp"
#include "tests/app/tiny_run.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

/// Invalid files, directories and options end a run with one line that names the problem, a non-zero exit code, and no
/// partial output.
namespace mylos::tests {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;
using Words = std::vector<std::string>;

class BadInput : public TinyRun {
 protected:
  Words train_words(const Words& more, const fs::path& output) const {
    Words words = {"train",   "--model", model_,         "--train", train_,         "--output", output,
                   "--steps", "1",       "--max-length", "60",      "--doc-stride", "20"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  ProgramRun train(const Words& more = {}) const { return run_mylos(train_words(more, run_)); }

  /// Expects that a run ends with one line about `what`, without anything that looks like a trained model.
  void expect_refused(const ProgramRun& run, const std::string& what, int exit_code = 1) const {
    EXPECT_EQ(run.exit_code, exit_code) << run.errors;
    ASSERT_FALSE(run.error_lines().empty());
    EXPECT_EQ(run.error_lines().size(), 1u) << run.errors;
    EXPECT_TRUE(run.error_lines().back().starts_with("mylos: error: ")) << run.errors;
    EXPECT_THAT(run.error_lines().back(), HasSubstr(what));
    EXPECT_THAT(run.errors, testing::Not(HasSubstr(".cpp:")));
    EXPECT_EQ(run.output, "");
    EXPECT_FALSE(fs::exists(run_ / "best"));
    EXPECT_FALSE(fs::exists(run_ / "results.json"));
  }

  void edit_config(const std::string& key, const json& value) const {
    json config = json::parse(read_file(model_ / "config.json"));
    value.is_discarded() ? void(config.erase(key)) : void(config[key] = value);
    write_file(model_ / "config.json", config.dump());
  }
  /// Edits the JSON of the questions' file.
  template <class Edit>
  void edit_questions(Edit edit) const {
    json document = json::parse(read_file(train_));
    edit(document["data"][0]["paragraphs"]);
    write_file(train_, document.dump());
  }
};

TEST_F(BadInput, QuestionFiles) {
  const auto refused = [&](const std::string& text, const std::string& what) {
    SCOPED_TRACE(what);
    write_file(train_, text);
    const ProgramRun run = train();
    expect_refused(run, what);
    expect_refused(run, train_.string());
  };
  refused("", "train.json");
  refused("   \n", "train.json");
  refused("{\"data\": [", "not JSON");
  refused("hello", "not JSON");
  refused("\xff\xfe{}", "not UTF-8 at byte 0");
  refused("{}", "data");
  refused("[]", "train.json");
  refused(R"({"data": 3})", "data");
  refused(R"({"data": [{"paragraphs": [{"context": 5, "qas": []}]}]})", "context");
  refused(R"({"data": [{"paragraphs": [{"qas": []}]}]})", "context");
  refused(R"({"data": [{"paragraphs": [{"context": "a", "qas": [{"id": "x"}]}]}]})", "question");
  refused(R"({"data": [{"paragraphs": [{"context": "a", "qas": []}]}]})", "train.json");
  fs::remove(train_);
  expect_refused(train(), "No such file or directory");
  expect_refused(train({"--train", directory_.path()}), "directory");
}

TEST_F(BadInput, DuplicateIds) {
  edit_questions([](json& paragraphs) { paragraphs[1]["qas"][0]["id"] = "q01"; });
  expect_refused(train(), "q01");
}

TEST_F(BadInput, MisplacedAnswersAreCountedOrRefused) {
  edit_questions([](json& paragraphs) {
    paragraphs[0]["qas"][0]["answers"][0]["answer_start"] = 1;
    paragraphs[1]["qas"][1]["answers"][0]["answer_start"] = 999;
  });
  const ProgramRun strict = train({"--strict"});
  expect_refused(strict, "2 answers do not match their context");
  EXPECT_THAT(strict.errors, HasSubstr("q01"));
  const ProgramRun run = train();
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.errors, HasSubstr("2 answers do not match their context"));
  EXPECT_THAT(run.errors, HasSubstr("10 windows"));
}

TEST_F(BadInput, Configurations) {
  const std::string good = read_file(model_ / "config.json");
  const auto refused = [&](const std::string& key, const json& value) {
    SCOPED_TRACE(key + " " + value.dump());
    edit_config(key, value);
    const ProgramRun run = train();
    expect_refused(run, "config.json");
    expect_refused(run, key);
    write_file(model_ / "config.json", good);
  };
  refused("model_type", "roberta");
  refused("hidden_act", "swish");
  refused("hidden_size", 0);
  refused("hidden_size", -16);
  refused("hidden_size", "16");
  refused("num_attention_heads", 3);
  refused("num_hidden_layers", 0);
  refused("layer_norm_eps", -1);
  refused("hidden_dropout_prob", 1.5);
  write_file(model_ / "config.json", "{");
  expect_refused(train(), "config.json");
  fs::remove(model_ / "config.json");
  expect_refused(train(), "config.json");
}

TEST_F(BadInput, OtherModelFamilies) {
  edit_config("model_type", "vit");
  edit_config("architectures", json::array({"ViTForImageClassification"}));
  const std::string line =
      "config.json: model_type is \"vit\" (ViTForImageClassification); the supported model types are bert, llama, "
      "resnet";
  expect_refused(train(), line);
  expect_refused(run_mylos({"train", "--model", model_, "--train", train_, "--output", run_, "--image-size", "32"}),
                 line);
}

TEST_F(BadInput, AHeadOfAnotherTaskIsLeftOut) {
  write_tiny_model(model_, {.has_head = false});
  const data::SafetensorsFile file(model_ / "model.safetensors");
  std::vector<std::vector<float>> values;
  for (const data::TensorInfo& tensor : file.tensors()) values.push_back(file.read_float(tensor.name));
  std::vector<data::NamedTensor> tensors;
  for (const data::TensorInfo& tensor : file.tensors())
    tensors.push_back({tensor.name, tensor.shape, values[tensors.size()]});
  const std::vector<float> head(3, 0.5f);
  tensors.push_back({"classifier.bias", {3}, head});
  tensors.push_back({"score.weight", {3}, head});
  data::write_safetensors(model_ / "classifier.safetensors", tensors);
  fs::rename(model_ / "classifier.safetensors", model_ / "model.safetensors");
  const ProgramRun run = train();
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.errors, HasSubstr("tensors not used for question answering are ignored: "));
  EXPECT_THAT(run.errors, HasSubstr("classifier.bias"));
  fs::remove_all(run_);
  const ProgramRun eval = run_mylos(
      {"eval", "--model", model_, "--data", train_, "--output", run_, "--max-length", "60", "--doc-stride", "20"});
  EXPECT_EQ(eval.exit_code, 1);
  EXPECT_THAT(
      eval.errors,
      HasSubstr("has no qa_outputs.weight, but the head of another task (classifier.bias, score.weight): it was not "
                "fine-tuned for this task; train it first"));
}

TEST_F(BadInput, WithoutACacheARunGoesOn) {
  const EnvironmentVariable home("HOME", "");
  for (const auto& [cache, why] : {std::pair{"", "neither XDG_CACHE_HOME nor HOME is set"},
                                   std::pair{"/proc/cache", "/proc/cache/mylos cannot be written"}}) {
    const EnvironmentVariable directory("XDG_CACHE_HOME", cache);
    const ProgramRun run = train({"--overwrite"});
    EXPECT_EQ(run.exit_code, 0) << run.errors;
    const std::string line = "warning: timings of kernels cannot be stored: ";
    EXPECT_THAT(run.errors, HasSubstr(line + why));
    EXPECT_EQ(run.errors.find(line), run.errors.rfind(line)) << "said once";
  }
}

TEST_F(BadInput, ModelsThatAreNotThere) {
  expect_refused(train({"--model", "/no/such/model"}), "/no/such/model");
  expect_refused(train({"--model", "no-such-model"}), "no-such-model");
  expect_refused(train({"--model", train_}), "train.json");
}

TEST_F(BadInput, Weights) {
  const fs::path weights = model_ / "model.safetensors";
  const std::string good = read_file(weights);
  const auto refused = [&](const std::string& bytes, const std::string& what) {
    SCOPED_TRACE(what);
    write_file(weights, bytes);
    expect_refused(train(), what);
  };
  refused("", "model.safetensors");
  refused(good.substr(0, 5), "model.safetensors");
  refused(good.substr(0, good.size() - 4), "model.safetensors");
  refused(good + "xxxx", "model.safetensors");
  refused(std::string(8, '\xff') + good.substr(8), "model.safetensors");
  std::string other_type = good;
  other_type.replace(other_type.find("\"F32\""), 5, "\"I32\"");
  refused(other_type, "I32");
  const float value[] = {1.0f};
  const std::vector<data::NamedTensor> extra = {{"bert.extra.weight", {1}, value}};
  data::write_safetensors(weights, extra);
  expect_refused(train(), "bert.");
  fs::remove(weights);
  expect_refused(train(), "model.safetensors");
  write_file(model_ / "pytorch_model.bin", "x");
  expect_refused(train(), "pytorch_model.bin");
}

TEST_F(BadInput, Vocabularies) {
  const std::string good = read_file(model_ / "vocab.txt");
  write_file(model_ / "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n");
  expect_refused(train(), "vocab.txt");
  write_file(model_ / "vocab.txt", "a\nb\n");
  expect_refused(train(), "[PAD]");
  write_file(model_ / "vocab.txt", good + "a\n");
  expect_refused(train(), "vocab.txt");
  fs::remove(model_ / "vocab.txt");
  expect_refused(train(), "vocab.txt");
}

TEST_F(BadInput, WindowsThatCannotBe) {
  expect_refused(train({"--max-length", "65"}), "--max-length 65: expected at most 64", 2);
  edit_questions([](json& paragraphs) { paragraphs[2]["qas"][0]["question"] = std::string(101, 'x') + "?"; });
  // A word of 101 letters is one unknown token; a hundred words are not.
  EXPECT_EQ(train().exit_code, 0);
  fs::remove_all(run_);
  edit_questions([](json& paragraphs) {
    std::string words;
    for (int i = 0; i < 100; ++i) words += "x ";
    paragraphs[2]["qas"][0]["question"] = words;
  });
  expect_refused(train(), "q21");
}

TEST_F(BadInput, Heads) {
  const fs::path head = directory_ / "head.safetensors";
  expect_refused(train({"--head", head}), "head.safetensors");
  const std::vector<float> values(32, 0.0f);
  const std::vector<data::NamedTensor> wrong = {{"qa_outputs.weight", {4, 8}, values},
                                                {"qa_outputs.bias", {2}, std::span(values).first(2)}};
  data::write_safetensors(head, wrong);
  expect_refused(train({"--head", head}), "(4, 8)");
  data::write_safetensors(head, std::span(wrong).last(1));
  expect_refused(train({"--head", head}), "qa_outputs.weight");
}

TEST_F(BadInput, Orders) {
  const fs::path order = directory_ / "order.jsonl";
  const auto refused = [&](const std::string& text, const std::string& what) {
    write_file(order, text);
    expect_refused(train({"--order", order}), what);
  };
  expect_refused(train({"--order", order}), "order.jsonl");
  refused("[[\"q01\", 0]", "order.jsonl");
  refused("[[\"nobody\", 0]]\n", "nobody");
  refused("[[\"q01\", 7]]\n", "q01");
  refused("[]\n", "order.jsonl");
  refused("[[\"q01\", 0]]\n\n[[\"q01\", 0]]\n", "order.jsonl: line 2: is blank; each line is a step");
}

TEST_F(BadInput, ABatchThatCannotFit) {
  // Embeddings of 2 TiB: rejected before anything is read or trained.
  edit_config("max_position_embeddings", 1ull << 35);
  const ProgramRun run = train();
  EXPECT_NE(run.exit_code, 0);
  EXPECT_EQ(run.error_lines().size(), 1u) << run.errors;
  EXPECT_FALSE(fs::exists(run_ / "best"));
}

TEST_F(BadInput, OutputDirectories) {
  write_file(run_ / "notes.txt", "mine");
  expect_refused(train(), "notes.txt");
  expect_refused(train({"--overwrite"}), "notes.txt");
  EXPECT_EQ(read_file(run_ / "notes.txt"), "mine");
  expect_refused(train({"--output", train_}), "is a file");
  expect_refused(train({"--output", train_ / "below"}), "train.json");
}

TEST_F(BadInput, OutputThatCannotBeWritten) {
  expect_refused(train({"--output", "/proc/run"}), "/proc/run");
  if (::geteuid() != 0) {
    fs::create_directory(directory_ / "closed");
    fs::permissions(directory_ / "closed", fs::perms::owner_read | fs::perms::owner_exec);
    expect_refused(train({"--output", directory_ / "closed" / "run"}), "closed");
  }
  // Root can write everywhere except to a read-only file system.
  const fs::path disk = directory_ / "disk";
  const auto run = run_on_small_disk(disk, 1024, R"(mount -o remount,ro "$disk"; "$@")", train_words({}, disk / "run"));
  if (!run) GTEST_SKIP() << "this user may not mount a file system";
  expect_refused(*run, "Read-only file system");
}

TEST_F(BadInput, ADiskThatIsTooSmall) {
  const fs::path disk = directory_ / "disk";
  const auto run = run_on_small_disk(disk, 16, R"("$@")", train_words({}, disk / "run"));
  if (!run) GTEST_SKIP() << "this user may not mount a file system";
  EXPECT_EQ(run->exit_code, 1) << run->errors;
  EXPECT_THAT(run->error_lines().back(), HasSubstr("make room or choose another directory"));
}

TEST_F(BadInput, ADiskThatFillsUpDuringTheRun) {
  const fs::path disk = directory_ / "disk", ask = directory_ / "ask";
  write_file(ask, "what is q11?\n");
  // The disk is filled once best/ exists; the model in best/ must still answer.
  const std::string script = R"(
    (until [ -e "$disk/run/best/model.safetensors" ]; do sleep 0.02; done; cat /dev/zero >"$disk/dummy") 2>/dev/null &
    "$@"
    code=$?
    wait
    rm "$disk/dummy"
    "$1" ask --model "$disk/run" --context ")" +
                             ask.string() + R"(" "what is q11?" 2>/dev/null || exit 99
    exit $code)";
  const auto run = run_on_small_disk(
      disk, 4096, script, train_words({"--steps", "1000000", "--dev", train_, "--eval-every", "1"}, disk / "run"));
  if (!run) GTEST_SKIP() << "this user may not mount a file system";
  EXPECT_EQ(run->exit_code, 1) << run->errors;
  EXPECT_TRUE(run->error_lines().back().starts_with("mylos: error: cannot write ")) << run->errors;
  EXPECT_THAT(run->error_lines().back(), HasSubstr("No space left on device"));
  EXPECT_THAT(run->output, HasSubstr("what is q11?"));
}

TEST_F(BadInput, AFileThatMayNotGrow) {
  const auto run = run_on_small_disk(directory_ / "disk", 1024, R"(ulimit -f 8; "$@")", train_words({}, run_));
  if (!run) GTEST_SKIP() << "this user may not mount a file system";
  EXPECT_EQ(run->exit_code, 1) << run->errors;
  EXPECT_THAT(run->error_lines().back(), HasSubstr("File too large"));
  EXPECT_FALSE(fs::exists(run_ / "best"));
}

TEST_F(BadInput, EvalAskAndPrepare) {
  const Words windows = {"--max-length", "60", "--doc-stride", "20"};
  const auto run = [&](Words words) {
    words.insert(words.end(), windows.begin(), windows.end());
    return run_mylos(words);
  };
  expect_refused(run({"eval", "--model", model_, "--data", "/no/dev.json", "--output", run_}), "/no/dev.json");
  const Words nested = {"eval", "--model", model_, "--data", "/no/dev.json", "--output", run_ / "a" / "b"};
  expect_refused(run(nested), "/no/dev.json");
  EXPECT_FALSE(fs::exists(run_));
  expect_refused(run({"eval", "--model", model_, "--data", train_, "--output", train_}), "train.json");
  expect_refused(run({"prepare", "--model", model_, "--data", train_, "--output", run_}), ".h5 or .jsonl", 2);
  expect_refused(run({"prepare", "--model", model_, "--data", train_, "--output", train_ / "x.jsonl"}), "train.json");
  expect_refused(run({"ask", "--model", model_, "--context", "/no/text.txt", "who?"}), "/no/text.txt");
  expect_refused(run({"ask", "--model", model_, "--context", "-"}), "standard input", 2);
  expect_refused(run({"ask", "--model", model_, "--context", train_, "\xff"}), "not UTF-8");
  for (const char* blank : {"", " \t", "\u00a0\u2003"}) {
    expect_refused(run({"ask", "--model", model_, "--context", train_, "who?", blank}), "a question is blank", 2);
  }
  write_file(directory_ / "empty.txt", "");
  expect_refused(run({"ask", "--model", model_, "--context", directory_ / "empty.txt", "who?"}), "empty.txt");
  expect_refused(run({"bench", "step", "--model", model_}), "--data", 2);
  expect_refused(run({"bench", "step", "--model", model_, "--tokens", "9"}), "bench step has no --tokens", 2);
  expect_refused(run({"bench", "gemm", "--breakdown"}), "bench gemm has no --breakdown", 2);
  expect_refused(run({"bench", "gemm", "--gemm", "onednn"}), "bench gemm has no --gemm", 2);
  expect_refused(run({"bench", "gemm", "--model", model_, "--shapes", "minilm"}), "exclude each other", 2);
  expect_refused(run({"bench", "step", "--micro-tokens", "90", "--micro-batch", "2"}), "micro-tokens", 2);
  expect_refused(run({"bench", "gemm", "--cased"}), "bench gemm has no --cased", 2);
  expect_refused(run({"bench", "tokenize", "--batch", "4"}), "bench tokenize has no --batch", 2);
  expect_refused(run({"bench", "sort"}), "gemm, step, batch, tokenize or collectives", 2);
  expect_refused(run({"bench", "tokenize", "--vocab", model_ / "vocab.txt"}), "--data", 2);
  expect_refused(run({"bench", "tokenize", "--data", train_}), "--vocab or --model", 2);
  expect_refused(run_mylos({"score", "/no/data.json", train_}), "/no/data.json");
  expect_refused(run_mylos({"score", train_, "/no/predictions.json"}), "/no/predictions.json");
  expect_refused(run_mylos({"score", train_, train_}), "train.json");
}

TEST_F(BadInput, DamagedFeatureFiles) {
  const fs::path features = directory_ / "train.h5";
  const ProgramRun prepare = run_mylos({"prepare", "--model", model_, "--data", train_, "--output", features,
                                        "--max-length", "60", "--doc-stride", "20"});
  ASSERT_EQ(prepare.exit_code, 0) << prepare.errors;
  const std::string good = read_file(features);
  write_file(features, good.substr(0, good.size() / 2));
  expect_refused(train({"--train", features}), "train.h5");
  std::string flipped = good;
  flipped[good.size() - 100] = static_cast<char>(flipped[good.size() - 100] ^ 0x10);
  write_file(features, flipped);
  expect_refused(train({"--train", features}), "train.h5");
  write_file(features, good);
  expect_refused(train({"--train", features, "--max-length", "50"}), "train.h5");
}

}  // namespace
}  // namespace mylos::tests
