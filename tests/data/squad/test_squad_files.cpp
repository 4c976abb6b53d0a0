#include "data/squad/squad_files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/huggingface/fetch_record.hpp"
#include "tests/support/temporary.hpp"

namespace mylos::data {
namespace {

using ::testing::HasSubstr;
using tests::EnvironmentVariable;
using tests::error_of;
using tests::TemporaryDirectory;
using tests::write_file;

class SquadFilesOnDisk : public ::testing::Test {
 protected:
  TemporaryDirectory root_;
  EnvironmentVariable cache_{"XDG_CACHE_HOME", (root_ / "cache").string()}, home_{"HF_HOME", (root_ / "hf").string()},
      datasets_{"HF_DATASETS_CACHE", ""};
};

TEST_F(SquadFilesOnDisk, HaveTheHubsNames) {
  for (const char* name : {"squad", "squad_v2", "rajpurkar/squad", "rajpurkar/squad_v2"}) {
    EXPECT_TRUE(is_squad_name(name)) << name;
  }
  for (const char* name : {"", "glue", "other/squad", "rajpurkar/", "squad_v3"})
    EXPECT_FALSE(is_squad_name(name)) << name;
}

TEST_F(SquadFilesOnDisk, AreThoseThatFetchGot) {
  for (const char* name : {"train-v1.1.json", "dev-v1.1.json", "train-v2.0.json", "dev-v2.0.json"}) {
    write_file(root_ / "cache/mylos/squad" / name, "{}");
  }
  EXPECT_EQ(find_squad_files("squad").train, root_ / "cache/mylos/squad/train-v1.1.json");
  EXPECT_EQ(find_squad_files("rajpurkar/squad").dev, root_ / "cache/mylos/squad/dev-v1.1.json");
  EXPECT_EQ(find_squad_files("rajpurkar/squad_v2").dev, root_ / "cache/mylos/squad/dev-v2.0.json");
}

TEST_F(SquadFilesOnDisk, AreAsTheyWereFetched) {
  const auto squad = root_ / "cache/mylos/squad";
  for (const char* name : {"train-v1.1.json", "dev-v1.1.json", "train-v2.0.json", "dev-v2.0.json"}) {
    write_file(squad / name, "{}");
  }
  write_fetch_record(squad, "here", "");
  write_file(squad / "dev-v1.1.json", "[]");
  EXPECT_THAT(error_of([] { find_squad_files("squad"); }), HasSubstr("dev-v1.1.json has SHA-256 "));
  EXPECT_EQ(find_squad_files("squad_v2").dev, squad / "dev-v2.0.json") << "whose files are as they were";
}

TEST_F(SquadFilesOnDisk, OrThoseThatDatasetsDownloaded) {
  const auto put = [&](const std::string& hash, const std::string& url) {
    write_file(root_ / "hf/datasets/downloads" / hash, "{}");
    write_file(root_ / "hf/datasets/downloads" / (hash + ".json"), R"({"url": ")" + url + R"(", "etag": "x"})");
  };
  put("aa", "https://rajpurkar.github.io/SQuAD-explorer/dataset/train-v1.1.json");
  write_file(root_ / "hf/datasets/downloads/broken.json", "{");
  write_file(root_ / "hf/datasets/downloads/broken", "");
  EXPECT_THAT(error_of([] { find_squad_files("squad"); }), HasSubstr("get them with: mylos fetch squad"));
  put("bb", "https://rajpurkar.github.io/SQuAD-explorer/dataset/dev-v1.1.json");
  EXPECT_EQ(find_squad_files("squad").train, root_ / "hf/datasets/downloads/aa");
  EXPECT_EQ(find_squad_files("squad").dev, root_ / "hf/datasets/downloads/bb");
  EXPECT_THAT(error_of([] { find_squad_files("glue"); }), HasSubstr("no name of SQuAD"));
}

}  // namespace
}  // namespace mylos::data
