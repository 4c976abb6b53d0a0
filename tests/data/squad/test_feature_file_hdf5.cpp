#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "core/base/files/hdf5_file.hpp"
#include "data/squad/feature_file.hpp"
#include "tests/data/squad/prepared.hpp"
#include "tests/support/hdf5_leaks.hpp"
#include "tests/support/temporary.hpp"

namespace mylos::data {
namespace {

using ::testing::AnyOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using tests::error_of;
using tests::TemporaryDirectory;

/// Formats everything in `prepared` as one text, for comparison.
std::string describe(const PreparedFeatures& prepared) {
  std::string text;
  const auto add = [&](auto value) { text += std::to_string(value) + ' '; };
  const auto& [dataset, set, options, tokenizer] = prepared;
  add(dataset.version == SquadVersion::v2_0);
  for (const auto& context : dataset.contexts) text += context + '|';
  for (const auto& question : dataset.questions) {
    text += question.id + '|' + question.question + '|';
    add(question.context);
    add(question.has_answers_key);
    add(question.impossible);
    for (const auto& answer : question.answers) {
      text += answer.text + '|';
      add(answer.start);
      add(answer.aligned);
    }
  }
  for (const auto* texts : {&set.questions, &set.contexts}) {
    for (const auto id : texts->tokens.ids) add(id);
    for (const auto& range : texts->tokens.offsets) add(range.begin), add(range.end);
    for (const auto start : texts->starts) add(start);
  }
  for (const auto context : set.context_of_question) add(context);
  for (const auto& row : set.features) {
    for (const auto value : {row.question, row.window, row.context_begin, row.context_count}) add(value);
    add(row.start), add(row.end);
  }
  for (const auto value : {set.sep_labels, options.max_length, options.doc_stride, tokenizer.size}) add(value);
  for (const auto value : {set.layout.first, set.layout.separator}) add(value);
  add(tokenizer.checksum);
  add(options.exact_labels);
  add(options.truncate);
  return text;
}

/// A feature file written by Mylos, and the error of reading it after a change.
class FeatureFileHdf5 : public ::testing::Test {
 protected:
  void SetUp() override { write_feature_file(path_, small_prepared()); }

  std::string message() const {
    return tests::error_of_file(path_, [&] { read_feature_file(path_); });
  }

  void write(Hdf5Writer& file) const { tests::write_file(path_, file.finish()); }

  /// Returns the error for a file with these contents.
  std::string message_for(PreparedFeatures prepared, const std::function<void(PreparedFeatures&)>& change) {
    change(prepared);
    write_feature_file(path_, prepared);
    return message();
  }

  TemporaryDirectory directory_;
  std::filesystem::path path_ = directory_ / "features.h5";
};

TEST_F(FeatureFileHdf5, WhatIsWrittenReadsBack) {
  EXPECT_EQ(describe(read_feature_file(path_)), describe(small_prepared()));
  auto prepared = small_prepared();
  prepared.dataset.version = SquadVersion::v1_1;
  prepared.options.exact_labels = prepared.options.truncate = true;
  write_feature_file(path_, prepared);
  EXPECT_EQ(describe(read_feature_file(path_)), describe(prepared));
}

TEST_F(FeatureFileHdf5, ADataSetWithoutQuestionsIsAFileToo) {
  const auto empty = prepare_features({}, letter_tokenizer(), {.max_length = 12, .doc_stride = 2});
  write_feature_file(path_, empty);
  EXPECT_EQ(describe(read_feature_file(path_)), describe(empty));
}

TEST_F(FeatureFileHdf5, OtherFilesAreNamedForWhatTheyAre) {
  EXPECT_THAT(error_of([&] { read_feature_file(directory_ / "absent.h5"); }),
              HasSubstr("absent.h5: cannot open it as HDF5: "));
  tests::write_file(path_, "{\"data\": []}");
  EXPECT_EQ(message(), "F is not an HDF5 file");
  {
    Hdf5Writer other("other");
    other.write<std::int32_t>("/model/weights", std::vector<std::int32_t>{1, 2});
    write(other);
  }
  EXPECT_EQ(message(), "F: `mylos prepare` did not write it for such a model; " + prepare_command() + " writes one");
  {
    Hdf5Writer other("other");
    other.set_attribute("format", 7);
    write(other);
  }
  EXPECT_EQ(message(), "F: format is not a text");
  {
    Hdf5Writer other("other");
    other.set_attribute("format", "mylos features");
    other.set_attribute("format_version", 99);
    write(other);
  }
  EXPECT_EQ(message(), "F has format version 99, this program reads 2; " + prepare_again(path_.string()));
}

TEST_F(FeatureFileHdf5, AFileCutShortIsNamed) {
  const auto whole = tests::read_file(path_);
  tests::write_file(path_, whole.substr(0, whole.size() - 1));
  EXPECT_THAT(message(), HasSubstr("F: cannot open it as HDF5: truncated file: eof = "));
  for (std::size_t size = 0; size < whole.size(); size += 97) {
    tests::write_file(path_, whole.substr(0, size));
    EXPECT_THAT(message(), AnyOf(HasSubstr("F: cannot open it as HDF5: "), HasSubstr("F is not an HDF5 file"))) << size;
  }
}

TEST_F(FeatureFileHdf5, AFlippedByteInAnArrayIsNamedWithTheArray) {
  auto bytes = tests::read_file(path_);
  const auto location = bytes.find("a b c d e f g");
  ASSERT_NE(location, std::string::npos);
  bytes[location] = 'b';
  tests::write_file(path_, bytes);
  EXPECT_THAT(message(),
              ::testing::MatchesRegex(
                  "F: /contexts/bytes has CRC32C [0-9a-f]*, not [0-9a-f]*: the file is damaged; make it again .*"));
}

TEST_F(FeatureFileHdf5, ContentsThatContradictEachOtherAreNamed) {
  const auto good = small_prepared();
  const auto with = [&](const std::function<void(PreparedFeatures&)>& change) { return message_for(good, change); };
  EXPECT_EQ(with([](auto& p) { p.dataset.questions[0].context = 3; }), "F: a question has a context that is not there");
  EXPECT_EQ(with([](auto& p) { p.features.layout.first = -1; }), "F: classify = -1 is negative");
  EXPECT_EQ(with([](auto& p) { p.features.layout.separator = 11; }), "F: a special token is not of the vocabulary");
  EXPECT_EQ(with([](auto& p) { p.features.layout.separators = 3; }), "F: separators is neither 1 nor 2");
  EXPECT_EQ(with([](auto& p) { p.features.layout.second_type = 2; }), "F: second_type is neither 0 nor 1");
  EXPECT_EQ(with([](auto& p) { p.features.contexts.tokens.ids.values()[0] = 11; }),
            "F: a token is not of the vocabulary");
  EXPECT_EQ(with([](auto& p) { p.features.contexts.tokens.ids.values()[0] = -1; }),
            "F: a token is not of the vocabulary");
  EXPECT_EQ(with([](auto& p) {
              p.features.contexts.tokens.offsets.values()[0] = {5, 4};
            }),
            "F: a token ends before it begins");
  EXPECT_EQ(with([](auto& p) { p.features.contexts.tokens.offsets.values().pop_back(); }),
            "F: the arrays of /tokens/contexts differ in length");
  EXPECT_EQ(with([](auto& p) { p.features.contexts.starts.values().back() = 1000; }),
            "F: /tokens/contexts/starts does not divide 16 elements");
  EXPECT_EQ(with([](auto& p) { p.features.contexts.starts.values()[1] = 1000; }),
            "F: /tokens/contexts/starts does not divide 16 elements");
  EXPECT_EQ(with([](auto& p) { p.features.questions.starts.values().push_back(p.features.questions.starts.back()); }),
            "F: not every question has its tokens");
  EXPECT_EQ(with([](auto& p) { p.dataset.contexts.push_back("new"); }), "F: not every context has its tokens");
  EXPECT_EQ(with([](auto& p) { p.dataset.contexts[1] = "\xff"; }),
            "F: /contexts: not UTF-8 at byte 0; convert it to UTF-8");
  const auto window = "F: window 0 does not fit its question and context";
  EXPECT_EQ(with([](auto& p) { p.features.features.values()[0].question = 6; }), window);
  EXPECT_EQ(with([](auto& p) { p.features.features.values()[0].context_begin = 4000000000; }), window);
  EXPECT_EQ(with([](auto& p) { p.features.features.values()[0].context_count = 14; }), window);
  EXPECT_EQ(with([](auto& p) { p.features.features.values()[0].start = 12; }), window);
  EXPECT_EQ(with([](auto& p) { p.features.features.values()[0].end = -2; }), window);
}

TEST_F(FeatureFileHdf5, WindowsOutOfOrderAreNamed) {
  const auto good = small_prepared();
  const std::string again = prepare_again(path_.string());
  const auto with = [&](const std::function<void(std::vector<Feature>&)>& change) {
    return message_for(good, [&](auto& p) { change(p.features.features.values()); });
  };
  // A context of 14 tokens needs at least two windows of 8, so questions 0 to 3 have several.
  ASSERT_EQ(good.features.features[1].window, 1u);
  EXPECT_EQ(with([](auto& rows) { std::swap(rows[0], rows[1]); }),
            "F: window 0 is number 1 of question 0, out of order; " + again);
  EXPECT_EQ(with([](auto& rows) { std::swap(rows.front(), rows.back()); }),
            "F: window 0 is number 0 of question 5, out of order; " + again);
  EXPECT_EQ(with([](auto& rows) { rows.insert(rows.begin(), rows.front()); }),
            "F: window 1 is number 0 of question 0, out of order; " + again);
  EXPECT_EQ(with([](auto& rows) { rows.erase(rows.begin() + 1); }),
            "F: window 1 is number 2 of question 0, out of order; " + again);
  EXPECT_EQ(with([](auto& rows) { rows.pop_back(); }), "F: question 5 has no windows; " + again);
}

// StagedFile reports a full disk, which test_files.cpp tests.
TEST_F(FeatureFileHdf5, AFileThatCannotBeWrittenIsNamedAndNothingIsLeft) {
  std::filesystem::create_directory(directory_ / "folder");
  EXPECT_EQ(error_of([&] { write_feature_file(directory_ / "folder", small_prepared()); }),
            "cannot write " + (directory_ / "folder").string() + ": Is a directory");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory_.path()), {}), 2);
}

TEST_F(FeatureFileHdf5, ArraysOfAnotherKindAreNamed) {
  {
    Hdf5Writer other("other");
    other.write<std::uint32_t>("/a", std::vector<std::uint32_t>{1, 2});
    write(other);
  }
  Hdf5Reader reader(path_);
  EXPECT_EQ(reader.read<std::uint32_t>("/a"), (std::vector<std::uint32_t>{1, 2}));
  EXPECT_THAT(error_of([&] { reader.read<std::int32_t>("/a"); }), EndsWith("features.h5: /a has another element type"));
  EXPECT_THAT(error_of([&] { reader.read<std::int32_t>("/b"); }), HasSubstr("features.h5: cannot read /b: "));
  EXPECT_THAT(error_of([&] { reader.integer("size"); }), HasSubstr("features.h5: cannot read size: "));
  EXPECT_THAT(error_of([&] { reader.text("format"); }), HasSubstr("features.h5: cannot read format: "));
}

}  // namespace
}  // namespace mylos::data
