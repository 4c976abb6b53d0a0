#include "data/huggingface/weight_files_writer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "data/huggingface/pretrained.hpp"
#include "tests/support/file_size_limit.hpp"
#include "tests/support/temporary.hpp"
#include "tests/support/written_models.hpp"

namespace mylos::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using tests::error_of;
using tests::read_file;
using tests::TemporaryDirectory;

/// Returns tensors of 2, 3, 1 and 10 elements.
std::vector<TensorShape> four_tensors() {
  return {{"model.z.weight", {2}}, {"model.b.weight", {3}}, {"model.a.weight", {1}}, {"large", {2, 5}}};
}

std::vector<float> sixteen() {
  std::vector<float> values(16);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) / 4.0F;
  return values;
}

std::set<std::string> names_in(const std::filesystem::path& directory) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    names.insert(entry.path().filename().string());
  }
  return names;
}

/// Returns the contents of every file in a directory, by name.
std::map<std::string, std::string> contents_of(const std::filesystem::path& directory) {
  std::map<std::string, std::string> contents;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    contents[entry.path().filename()] = read_file(entry.path());
  }
  return contents;
}

void write_in_pieces(WeightFilesWriter& writer, std::size_t piece) {
  const std::vector<float> values = sixteen();
  for (std::size_t first = 0; first < values.size(); first += piece) {
    writer.write(std::span(values).subspan(first, std::min(piece, values.size() - first)));
  }
}

TEST(WeightFilesWriter, ShardsHoldWholeTensorsUpToTheLimit) {
  const auto shards = [](std::uint64_t limit, Precision precision = Precision::float32) {
    return divide_into_shards(four_tensors(), {.precision = precision, .shard_bytes = limit});
  };
  EXPECT_THAT(shards(64), ElementsAre(4));
  EXPECT_THAT(shards(63), ElementsAre(3, 1));
  EXPECT_THAT(shards(24), ElementsAre(3, 1));
  EXPECT_THAT(shards(23), ElementsAre(2, 1, 1)) << "the third and the fourth have 44 bytes together";
  EXPECT_THAT(shards(44), ElementsAre(3, 1));
}

TEST(WeightFilesWriter, ATensorBeyondTheLimitHasAFileOfItsOwn) {
  EXPECT_THAT(divide_into_shards(four_tensors(), {.shard_bytes = 12}), ElementsAre(1, 1, 1, 1));
  EXPECT_THAT(divide_into_shards(four_tensors(), {.shard_bytes = 1}), ElementsAre(1, 1, 1, 1));
  EXPECT_THAT(divide_into_shards(four_tensors(), {.precision = Precision::bfloat16, .shard_bytes = 12}),
              ElementsAre(3, 1));
  EXPECT_THAT(divide_into_shards({}, {}), ElementsAre(0));
}

TEST(WeightFilesWriter, WritesTheIndexOfHuggingFace) {
  const TemporaryDirectory directory;
  WeightFilesWriter writer(directory.path(), four_tensors(), {.precision = Precision::bfloat16, .shard_bytes = 12});
  write_in_pieces(writer, 16);
  writer.commit();
  EXPECT_THAT(names_in(directory.path()),
              ElementsAre("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors",
                          "model.safetensors.index.json"));
  EXPECT_EQ(read_file(directory / "model.safetensors.index.json"), R"({
  "metadata": {
    "total_parameters": 16,
    "total_size": 32
  },
  "weight_map": {
    "large": "model-00002-of-00002.safetensors",
    "model.a.weight": "model-00001-of-00002.safetensors",
    "model.b.weight": "model-00001-of-00002.safetensors",
    "model.z.weight": "model-00001-of-00002.safetensors"
  }
}
)");
}

TEST(WeightFilesWriter, ValuesComeBackHoweverTheyAreCut) {
  for (const std::size_t piece : {std::size_t{1}, std::size_t{3}, std::size_t{16}}) {
    for (const std::uint64_t limit : {1, 12, 24, 1000}) {
      const TemporaryDirectory directory;
      WeightFilesWriter writer(directory.path(), four_tensors(), {.shard_bytes = limit});
      write_in_pieces(writer, piece);
      writer.commit();
      const WeightFiles files(FileReader(), directory.path());
      std::vector<float> back;
      for (const TensorShape& tensor : four_tensors()) {
        const WeightEntry& entry = files.entries().at(tensor.name);
        const std::vector<float> values = entry.file->read_float(tensor.name);
        back.insert(back.end(), values.begin(), values.end());
      }
      EXPECT_EQ(back, sixteen()) << limit << " bytes a file, written by " << piece;
    }
  }
}

TEST(WeightFilesWriter, TooFewAndTooManyValuesAreErrors) {
  const TemporaryDirectory directory;
  for (const std::uint64_t limit : {12, 1000}) {
    WeightFilesWriter few(directory.path(), four_tensors(), {.shard_bytes = limit});
    few.write(std::vector<float>(3));
    EXPECT_THROW(few.commit(), std::invalid_argument);
    WeightFilesWriter many(directory.path(), four_tensors(), {.shard_bytes = limit});
    many.write(std::vector<float>(17));
    EXPECT_THROW(many.commit(), std::invalid_argument);
  }
  const std::vector<TensorShape> twice{{"a", {1}}, {"b", {1}}, {"a", {1}}};
  EXPECT_THAT(error_of([&] { WeightFilesWriter(directory.path(), twice, {.shard_bytes = 4}); }),
              HasSubstr("tensor \"a\" would be written twice"));
}

TEST(WeightFilesWriter, SeveralWritersWriteTheFilesOfOne) {
  for (const std::uint64_t limit : {1, 12, 24}) {
    const WeightFormat format{.shard_bytes = limit};
    const std::vector<std::size_t> counts = divide_into_shards(four_tensors(), format);
    const std::vector<float> values = sixteen();
    const TemporaryDirectory one;
    WeightFilesWriter alone(one.path(), four_tensors(), format);
    write_in_pieces(alone, 3);
    alone.commit();
    for (std::size_t writers = 1; writers <= counts.size(); ++writers) {
      const TemporaryDirectory several;
      for (std::size_t writer = writers; writer-- > 0;) {
        WeightFilesWriter part(several.path(), four_tensors(), format, {.writer = writer, .writers = writers});
        std::size_t tensor = 0, value = 0;
        for (std::size_t file = 0; file < counts.size(); ++file) {
          for (const std::size_t end = tensor + counts[file]; tensor < end; ++tensor) {
            const std::size_t size = four_tensors()[tensor].shape[0] * (tensor == 3 ? 5 : 1);
            if (file % writers == writer) part.write(std::span(values).subspan(value, size));
            value += size;
          }
        }
        part.commit();
      }
      EXPECT_EQ(contents_of(several.path()), contents_of(one.path())) << writers << " writers";
    }
  }
  const TemporaryDirectory directory;
  EXPECT_THROW(WeightFilesWriter(directory.path(), four_tensors(), {.shard_bytes = 24}, {.writer = 0, .writers = 3}),
               std::invalid_argument)
      << "more writers than files";
}

TEST(WeightFilesWriter, ADirectoryThatAnotherWriterDoesNotSeeIsRefused) {
  const TemporaryDirectory directory;
  const OrderedJson config = OrderedJson::object();
  const WeightFormat format{.shard_bytes = 12};
  const auto writer = [&](std::size_t number, const std::filesystem::path& staged) {
    return PretrainedWriter(directory / "best", config, {}, four_tensors(), format, {.writer = number, .writers = 2},
                            staged);
  };
  EXPECT_THAT(error_of([&] { writer(1, directory / "elsewhere"); }), HasSubstr("does not exist on every node"));
  EXPECT_FALSE(std::filesystem::exists(directory / "elsewhere"));
  // The other writer has written to a directory of its own node.
  PretrainedWriter first = writer(0, {});
  first.write(std::vector<float>(2));
  first.write(std::vector<float>(1));
  EXPECT_THAT(error_of([&] { first.commit(); }), HasSubstr("model-00002-of-00004.safetensors does not exist"));
  EXPECT_FALSE(std::filesystem::exists(directory / "best"));
}

/// Replaces shards by one file, and one file by shards.
TEST(WeightFilesWriter, ADirectoryThatIsReplacedKeepsNoStaleFile) {
  const TemporaryDirectory directory;
  const std::vector<float> values(4);
  const std::vector<NamedTensor> weights{{"a", {2}, std::span(values).first(2)}, {"b", {2}, std::span(values).last(2)}};
  const auto write = [&](std::uint64_t limit) {
    write_pretrained(directory / "best", OrderedJson::object(), {}, weights, {.shard_bytes = limit});
    return names_in(directory / "best");
  };
  const auto one = ElementsAre("config.json", "model.safetensors");
  const auto two = ElementsAre("config.json", "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors",
                               "model.safetensors.index.json");
  EXPECT_THAT(write(16), one);
  EXPECT_THAT(write(8), two);
  EXPECT_THAT(write(16), one);
  EXPECT_THAT(names_in(directory.path()), ElementsAre("best"));
}

TEST(WeightFilesWriter, AnExportThatFailsInItsSecondShardLeavesTheEarlierOneWhole) {
  const TemporaryDirectory directory;
  const auto write = [&](float value) {
    const std::vector<float> values(1002, value);
    const std::vector<NamedTensor> weights{{"a", {2}, std::span(values).first(2)},
                                           {"b", {1000}, std::span(values).last(1000)}};
    write_pretrained(directory / "best", OrderedJson{{"value", value}}, {}, weights, {.shard_bytes = 8});
  };
  write(1.0F);
  const auto before = contents_of(directory / "best");
  ASSERT_TRUE(before.contains("model-00002-of-00002.safetensors"));
  {
    const tests::FileSizeLimit full(2000);  // the configuration and the first shard are smaller
    EXPECT_THAT(error_of([&] { write(2.0F); }), HasSubstr("model-00002-of-00002.safetensors"));
  }
  EXPECT_EQ(contents_of(directory / "best"), before);
  EXPECT_THAT(names_in(directory.path()), ElementsAre("best"));
  write(2.0F);
  EXPECT_NE(contents_of(directory / "best"), before);
}

}  // namespace
}  // namespace mylos::data
