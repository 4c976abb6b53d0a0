#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "core/base/files/hdf5_file.hpp"
#include "data/text/sample_file.hpp"
#include "tests/data/text/small_samples.hpp"
#include "tests/support/hdf5_leaks.hpp"
#include "tests/support/temporary.hpp"

namespace mylos::data {
namespace {

using ::testing::HasSubstr;
using tests::small_samples;

void expect_same(const PreparedSamples& read, const PreparedSamples& written) {
  EXPECT_EQ(read.set, written.set);
  EXPECT_EQ(read.tokenizer, written.tokenizer);
  EXPECT_EQ(read.options.max_length, written.options.max_length);
  EXPECT_EQ(read.options.long_documents, written.options.long_documents);
  EXPECT_EQ(read.options.begin, written.options.begin);
  EXPECT_EQ(read.options.end, written.options.end);
  EXPECT_EQ(read.options.vocabulary_size, written.options.vocabulary_size);
}

/// A sample file written by Mylos, and the error of reading it after a change.
class SampleFileHdf5 : public ::testing::Test {
 protected:
  void SetUp() override { write_sample_file(path_, small_samples()); }

  std::string message() const {
    return tests::error_of_file(path_, [&] { read_sample_file(path_); });
  }
  std::string message_with(const std::function<void(PreparedSamples&)>& change) const {
    auto prepared = small_samples();
    change(prepared);
    write_sample_file(path_, prepared);
    return message();
  }

  tests::TemporaryDirectory directory_;
  std::filesystem::path path_ = directory_ / "samples.h5";
};

TEST_F(SampleFileHdf5, WhatIsWrittenReadsBack) {
  expect_same(read_sample_file(path_), small_samples());
  auto other = small_samples();
  other.options.begin.reset(), other.options.end.reset();
  other.options.long_documents = LongDocuments::truncate;
  other.tokenizer.reset();
  other.set.chat_template = 0xfedcba98U;
  write_sample_file(path_, other);
  expect_same(read_sample_file(path_), other);
  EXPECT_TRUE(is_sample_file(path_));
}

TEST_F(SampleFileHdf5, KeepsWhatIsSupervised) {
  auto marked = small_samples();
  marked.set.supervised = {0, 1, 1, 0, 0, 1, 0, 0, 1, 1, 1, 1};
  marked.set.counts.unsupervised_samples = 3;
  marked.options.long_documents = LongDocuments::truncate;
  marked.options.loss_on = LossOn::assistant;
  write_sample_file(path_, marked);
  expect_same(read_sample_file(path_), marked);
  EXPECT_EQ(read_sample_file(path_).options.loss_on, LossOn::assistant);
  const auto with = [&](std::vector<std::uint8_t> marks) {
    return message_with([&](PreparedSamples& prepared) { prepared.set.supervised = std::move(marks); });
  };
  EXPECT_EQ(with({1}), "F: /supervised has another length than /ids");
  EXPECT_EQ(with({2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}), "F: /supervised holds other values than 0 and 1");
  EXPECT_EQ(with({1, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1}), "F: sample 0 has no supervised token");
}

TEST_F(SampleFileHdf5, OtherFilesAreNamedForWhatTheyAre) {
  EXPECT_THAT(tests::error_of([&] { read_sample_file(directory_ / "absent.h5"); }),
              HasSubstr("absent.h5: cannot open it as HDF5: "));
  tests::write_file(path_, "{\"text\": \"a\"}");
  EXPECT_EQ(message(), "F is not an HDF5 file");
  EXPECT_FALSE(is_sample_file(path_));
  for (const char* format : {"mylos features", "mylos samples"}) {
    Hdf5Writer other("other");
    other.set_attribute("format", format);
    other.set_attribute("format_version", 9);
    tests::write_file(path_, other.finish());
    const bool is_ours = format == std::string("mylos samples");
    EXPECT_EQ(is_sample_file(path_), is_ours);
    EXPECT_EQ(message(),
              is_ours ? "F has format version 9, this program reads 2; " + prepare_again(path_.string())
                      : "F: `mylos prepare` did not write it for such a model; " + prepare_command() + " writes one");
  }
}

TEST_F(SampleFileHdf5, NoFlippedByteGoesUnnoticed) {
  const auto whole = tests::read_file(path_);
  std::mt19937 random(5);
  for (std::size_t location = 0; location < whole.size(); location += 1 + random() % 32) {
    auto bytes = whole;
    bytes[location] = static_cast<char>(bytes[location] ^ (1 << random() % 8));
    tests::write_file(path_, bytes);
    try {
      expect_same(read_sample_file(path_), small_samples());  // an unused byte
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    }
  }
}

TEST_F(SampleFileHdf5, ContentsThatContradictEachOtherAreNamed) {
  const auto with = [&](auto change) { return message_with(change); };
  EXPECT_EQ(with([](auto& p) { p.set.starts.values()[1] = 100; }), "F: /starts does not divide 12 elements");
  EXPECT_EQ(with([](auto& p) { p.set.starts.values().back() = 13; }), "F: /starts does not divide 12 elements");
  EXPECT_EQ(with([](auto& p) { p.set.starts.values().front() = 1; }), "F: /starts does not divide 12 elements");
  EXPECT_EQ(with([](auto& p) { p.set.starts.values().clear(); }), "F: /starts does not divide 12 elements");
  EXPECT_EQ(with([](auto& p) { p.set.documents.values().pop_back(); }),
            "F: the arrays of the samples differ in length");
  EXPECT_EQ(with([](auto& p) { p.set.lines.values().pop_back(); }), "F: the arrays of the samples differ in length");
  const auto order = "F: the samples are not in the order of the documents";
  EXPECT_EQ(with([](auto& p) { p.set.documents.values()[0] = 3; }), order);
  EXPECT_EQ(with([](auto& p) { p.set.documents.values()[3] = 5; }), order);
  EXPECT_EQ(with([](auto& p) { p.set.starts.values()[1] = 1; }), "F: sample 0 has 1 tokens, not 2 to 4");
  EXPECT_EQ(with([](auto& p) { p.options.max_length = 3; }), "F: sample 1 has 4 tokens, not 2 to 3");
  EXPECT_EQ(with([](auto& p) { p.set.ids.values()[5] = 11; }), "F: a token is not of the vocabulary");
  EXPECT_EQ(with([](auto& p) { p.set.ids.values()[5] = -1; }), "F: a token is not of the vocabulary");
  EXPECT_EQ(with([](auto& p) { p.options.begin = 11; }), "F: BOS or EOS is not of the vocabulary");
  EXPECT_EQ(with([](auto& p) { p.options.end = -2; }), "F: BOS or EOS is not of the vocabulary");
  EXPECT_EQ(with([](auto& p) { p.options.max_length = static_cast<std::size_t>(-1); }),
            "F: max_length = -1 is negative");
  EXPECT_EQ(with([](auto& p) { p.set = {}; }), "F: it contains no samples");
}

}  // namespace
}  // namespace mylos::data
