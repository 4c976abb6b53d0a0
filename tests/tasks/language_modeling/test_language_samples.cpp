// Compares ids and masks of conversations and completions with those recorded from transformers.

#include "tasks/language_modeling/language_task.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/temporary.hpp"

#include <gtest/gtest.h>

namespace mylos::tasks {
namespace {

namespace fs = std::filesystem;

/// A model directory with the tokenizer of a recorded folder.
class RecordedSamples : public testing::Test {
 protected:
  /// Writes the rows of `expected` without an error as data, reads them, and compares each sample.
  void compare(const fs::path& folder, const char* expected, const std::vector<const char*>& fields) {
    for (const char* name : {"tokenizer.json", "tokenizer_config.json"}) {
      fs::copy_file(folder / name, model_ / name, fs::copy_options::overwrite_existing);
    }
    nlohmann::json settings = nlohmann::json::parse(tests::read_file(folder.parent_path() / "tiny/config.json"));
    settings["vocab_size"] = 2000;
    tests::write_file(model_ / "config.json", settings.dump());
    const auto tokenizer = load_tokenizer(FileReader(), model_.path(), {});
    if (!tokenizer) GTEST_SKIP() << "tokenizer.json is not read";
    std::string lines;
    std::vector<nlohmann::json> rows;
    for (const nlohmann::json& row : tests::json_lines(folder / expected)) {
      if (row.contains("error")) continue;
      nlohmann::json given;
      for (const char* field : fields) given[field] = row[field];
      lines += given.dump() + "\n";
      rows.push_back(row);
    }
    tests::write_file(model_ / "rows.jsonl", lines);
    families::TextModel model;
    model.vocabulary = 1 << 20;
    model.begin_token = 7;   // not the one of the post-processor
    model.end_tokens = {0};  // not the one of tokenizer_config.json
    LanguageConfig config;
    config.max_length = 100000;
    const data::SampleSet set =
        load_samples(model_ / "rows.jsonl", tokenizer.get(), model, model_.path(), config, {}, [](const auto&) {});
    ASSERT_EQ(set.size(), rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto marks = set.supervised.span().subspan(set.starts[i], set.length(i));
      EXPECT_EQ(nlohmann::json(set.sample(i)), rows[i]["ids"]) << rows[i]["text"];
      EXPECT_EQ(nlohmann::json(std::vector<int>(marks.begin(), marks.end())), rows[i]["mask"]) << rows[i]["text"];
    }
  }

  tests::TemporaryDirectory model_;
};

TEST_F(RecordedSamples, HaveTheRecordedIdsAndMasks) {
  const fs::path root = tests::shared_reference() / "sft";
  if (!fs::is_directory(root)) GTEST_SKIP() << root << " is not there";
  for (const auto& entry : fs::directory_iterator(root)) {
    if (!fs::exists(entry.path() / "chat-expected.jsonl")) continue;
    SCOPED_TRACE(entry.path());
    compare(entry.path(), "chat-expected.jsonl", {"messages"});
    compare(entry.path(), "completion-expected.jsonl", {"prompt", "completion"});
  }
}

}  // namespace
}  // namespace mylos::tasks
