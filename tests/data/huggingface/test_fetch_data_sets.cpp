#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "core/base/files/download.hpp"
#include "core/base/files/json.hpp"
#include "core/base/process/subprocess.hpp"
#include "data/huggingface/fetch.hpp"
#include "data/images/image_set.hpp"
#include "data/text/documents.hpp"
#include "tests/families/fetch_sites.hpp"
#include "tests/support/http_server.hpp"

/// Data sets that `mylos fetch` unpacks or converts.
namespace mylos::data {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using tests::EnvironmentVariable;
using tests::error_of;
using tests::write_file;

using FetchDataSet = tests::FetchSites;

/// CIFAR's archive with two images per file and an additional file, but without `left_out`.
class FetchCifar10 : public FetchDataSet {
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
  EXPECT_EQ(open_images(FileReader(), target_.string(), ImagePart::training)->size(), 10u);
  const auto test = open_images(FileReader(), target_.string(), ImagePart::test);
  EXPECT_EQ(test->size(), 2u);
  EXPECT_EQ(test->label_names()[9], "truck");
  expect_nothing_partial();
  lines_.clear();
  EXPECT_EQ(fetch("cifar10", log_, families::find_model_family), target_);
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

TEST_F(FetchDataSet, Cifar100IsReadByImages) {
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
  EXPECT_EQ(open_images(FileReader(), target.string(), ImagePart::training)->size(), 3u);
  EXPECT_EQ(open_images(FileReader(), target.string(), ImagePart::test)->label_names()[99], "class99");
  EXPECT_EQ(fetch("cifar100", log_, families::find_model_family), target);
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
class FetchChess : public FetchDataSet {
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
  EXPECT_EQ(fetch("chess", log_, families::find_model_family), target_);
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
  EXPECT_EQ(fetch("chess", log_, families::find_model_family), target_);
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
