#include "data/huggingface/safetensors.hpp"
#include "tests/app/tiny_run.hpp"
#include "tests/support/written_models.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
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
    return joined({"train", "--model", model_, "--train", train_, "--output", output, "--steps", "1", "--max-length",
                   "60", "--doc-stride", "20"},
                  more);
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
    config[key] = value;
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
  refused("hello", "not JSON");
  refused("\xff\xfe{}", "not UTF-8 at byte 0");
  refused(R"({"data": [{"paragraphs": [{"context": "a", "qas": []}]}]})", "has no questions");
  fs::remove(train_);
  expect_refused(train(), "No such file or directory");
  expect_refused(train({"--train", directory_.path()}), "directory");
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

TEST_F(BadInput, FilesOfTheModel) {
  const auto refused = [&](const char* name, const std::string& text, const std::string& what) {
    const fs::path file = model_ / name;
    const std::string good = read_file(file);
    write_file(file, text);
    const ProgramRun run = train();
    expect_refused(run, name);
    expect_refused(run, what);
    write_file(file, good);
  };
  json config = read_json(model_ / "config.json");
  config["hidden_act"] = "swish";
  refused("config.json", config.dump(), "hidden_act");
  const std::string weights = read_file(model_ / "model.safetensors");
  refused("model.safetensors", weights.substr(0, weights.size() - 4), "cut short");
  refused("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n", "vocab.txt");
  for (const char* name : {"model.safetensors", "vocab.txt", "config.json"}) {
    fs::remove(model_ / name);
    expect_refused(train(), name);
  }
  expect_refused(train({"--model", train_}), "train.json");
}

TEST_F(BadInput, OtherModelFamilies) {
  edit_config("model_type", "vit");
  edit_config("architectures", json::array({"ViTForImageClassification"}));
  const std::string line =
      "config.json: model_type is \"vit\" (ViTForImageClassification); the supported model types are bert, llama, "
      "mistral, qwen2, qwen3, resnet";
  expect_refused(train(), line);
  expect_refused(run_mylos({"train", "--model", model_, "--train", train_, "--output", run_, "--image-size", "32"}),
                 line);
}

TEST_F(BadInput, AHeadOfAnotherTaskIsLeftOut) {
  write_tiny_model(model_, {.has_head = false});
  const data::SafetensorsFile file(FileReader(), model_ / "model.safetensors");
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
  refused("[[\"nobody\", 0]]\n", "nobody");
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

TEST_F(BadInput, OutputThatCannotBeWritten) {
  expect_refused(train({"--output", train_ / "below"}), "train.json");
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
  expect_refused(run({"bench", "gemm", "--gemm", "kokkos-kernels"}), "bench gemm has no --gemm", 2);
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

}  // namespace
}  // namespace mylos::tests
