#include "data/huggingface/weight_files.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/base/files/file_reader.hpp"
#include "families/bert/bert_config.hpp"
#include "tests/support/temporary.hpp"
#include "tests/support/written_models.hpp"

namespace mylos::data {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using tests::error_of;
using tests::TemporaryDirectory;
using tests::write_file;

void write_one(const std::filesystem::path& path, const std::string& name) {
  const std::vector<float> value{1.0F};
  write_safetensors(path, std::vector<NamedTensor>{{name, {1}, value}});
}

std::string message_for(const TemporaryDirectory& directory) {
  return error_of([&] { WeightFiles files(FileReader(), directory.path()); });
}

TEST(WeightFiles, ReadsShardsByTheirIndex) {
  const TemporaryDirectory directory;
  write_one(directory / "model-1.safetensors", "embeddings.LayerNorm.gamma");
  write_one(directory / "model-2.safetensors", "qa_outputs.bias");
  write_file(
      directory / "model.safetensors.index.json",
      R"({"weight_map":{"embeddings.LayerNorm.gamma":"model-1.safetensors","qa_outputs.bias":"model-2.safetensors"}})");
  ASSERT_TRUE(WeightFiles(FileReader(), directory.path()).entries().contains("embeddings.LayerNorm.gamma"))
      << "as it is named";
  const WeightFiles files(FileReader(), directory.path(), families::canonical_bert_name);
  ASSERT_EQ(files.entries().size(), 2u);
  const auto& entry = files.entries().at("bert.embeddings.LayerNorm.weight");
  EXPECT_EQ(entry.tensor->name, "embeddings.LayerNorm.gamma");
  EXPECT_EQ(entry.file->path().filename(), "model-1.safetensors");
}

/// As on ranks that receive the headers which the first rank has read.
TEST(WeightFiles, ThatAreGoneHaveTheHeadersOfACopy) {
  for (const bool is_sharded : {false, true}) {
    const TemporaryDirectory directory;
    write_one(directory / (is_sharded ? "model-1.safetensors" : "model.safetensors"), "a");
    if (is_sharded) {
      write_one(directory / "model-2.safetensors", "b");
      write_file(directory / "model.safetensors.index.json",
                 R"({"weight_map":{"a":"model-1.safetensors","b":"model-2.safetensors"}})");
    }
    FileCopies copies;
    WeightFiles(FileReader(copies, 1000), directory.path());
    const auto received = value_of_bytes<FileCopies>(bytes_of_value(copies));
    for (const auto& entry : std::filesystem::directory_iterator(directory.path())) {
      if (entry.path().extension() == ".safetensors") std::filesystem::rename(entry, entry.path().string() + ".gone");
    }
    const WeightFiles files(FileReader(received), directory.path());
    ASSERT_EQ(files.entries().size(), is_sharded ? 2u : 1u);
    const WeightEntry& a = files.entries().at("a");
    EXPECT_EQ(a.tensor->shape, std::vector<std::size_t>{1});
    const std::string path = a.file->path().string();
    EXPECT_THAT(error_of([&] { a.file->read_float("a"); }), HasSubstr("cannot read " + path));
    std::filesystem::rename(path + ".gone", path);
    EXPECT_EQ(a.file->read_float("a"), std::vector<float>{1.0F});
  }
}

TEST(WeightFiles, WrongIndexesAreNamed) {
  const TemporaryDirectory directory;
  const auto message = [&](const char* text) {
    write_file(directory / "model.safetensors.index.json", text);
    return message_for(directory);
  };
  EXPECT_THAT(message("{"), HasSubstr("index.json: not JSON at line "));
  EXPECT_THAT(message("[]"), EndsWith("index.json: no object \"weight_map\""));
  EXPECT_THAT(message(R"({"weight_map":3})"), EndsWith("index.json: no object \"weight_map\""));
  EXPECT_THAT(message(R"({"weight_map":{"a":3}})"), EndsWith("index.json: the file of \"a\" is not a string"));
  for (const std::string file : {"../b", "/b", "a/b", ".", "..", "", "b\\u0000c"}) {
    EXPECT_THAT(message((R"({"weight_map":{"a":")" + file + R"("}})").c_str()),
                EndsWith("which is not a file's name in this directory"))
        << file;
  }
  EXPECT_THAT(message(R"({"weight_map":{"a":"../b"}})"), HasSubstr("index.json: \"a\" is in \"../b\", which"));
  EXPECT_THAT(message(R"({"weight_map":{"a":"absent.safetensors"}})"),
              EndsWith("index.json: \"a\" is in absent.safetensors, which does not exist; fetch it"));
  write_one(directory / "s.safetensors", "b");
  EXPECT_THAT(message(R"({"weight_map":{"a":"s.safetensors"}})"),
              EndsWith("index.json: \"a\" should be in s.safetensors, which has no such tensor"));
  write_one(directory / "s.safetensors", "embeddings.LayerNorm.gamma");
  write_one(directory / "t.safetensors", "embeddings.LayerNorm.weight");
  write_file(
      directory / "model.safetensors.index.json",
      R"({"weight_map":{"embeddings.LayerNorm.gamma":"s.safetensors","embeddings.LayerNorm.weight":"t.safetensors"}})");
  EXPECT_THAT(
      error_of([&] { WeightFiles files(FileReader(), directory.path(), families::canonical_bert_name); }),
      EndsWith(
          "t.safetensors: tensor \"embeddings.LayerNorm.weight\" is also stored as \"embeddings.LayerNorm.gamma\" in "
          "s.safetensors"));
}

/// The reader of the weights decides whether the model ignores them.
TEST(WeightFiles, TensorsThatTheIndexDoesNotNameAreApart) {
  const TemporaryDirectory directory;
  const std::vector<float> one{1.0F};
  write_safetensors(directory / "s.safetensors", std::vector<NamedTensor>{{"a", {1}, one}, {"b", {1}, one}});
  write_one(directory / "t.safetensors", "a");
  write_one(directory / "u.safetensors", "c");
  write_file(directory / "model.safetensors.index.json", R"({"weight_map":{"a":"s.safetensors"}})");
  const WeightFiles files(FileReader(), directory.path());
  ASSERT_EQ(files.entries().size(), 1u);
  ASSERT_EQ(files.unnamed().size(), 1u) << "files that the index does not name are not read";
  TensorNaming naming;
  naming.is_ignored = [](std::string_view name) { return name == "b"; };
  EXPECT_NO_THROW(files.check_unnamed(naming));
  EXPECT_THAT(error_of([&] { files.check_unnamed({}); }),
              EndsWith("s.safetensors: tensor \"b\" is not in model.safetensors.index.json: the file or the index "
                       "belongs to another model; fetch both again"));
}

TEST(WeightFiles, AShardCutShortIsNamedWithItsTensor) {
  const TemporaryDirectory directory;
  write_one(directory / "s.safetensors", "a");
  write_file(directory / "model.safetensors.index.json", R"({"weight_map":{"a":"s.safetensors"}})");
  const auto size = std::filesystem::file_size(directory / "s.safetensors");
  std::filesystem::resize_file(directory / "s.safetensors", size - 1);
  EXPECT_THAT(
      message_for(directory),
      HasSubstr("s.safetensors: tensor \"a\" ends at byte 4, but the file has 3 bytes of data: it was cut short"));
  std::filesystem::resize_file(directory / "s.safetensors", 20);
  EXPECT_THAT(message_for(directory), HasSubstr("s.safetensors: its header claims"));
}

/// As on a rank whose node has another version of the model.
TEST(WeightFiles, OfACopiedHeaderMustBeTheFileThatHasIt) {
  const TemporaryDirectory directory;
  const std::filesystem::path path = directory / "model.safetensors";
  write_one(path, "a");
  FileCopies copies;
  WeightFiles(FileReader(copies, 1000), directory.path());
  const auto message_of_file = [&](const std::string& content) {
    write_file(path, content);
    const WeightFiles files(FileReader(copies), directory.path());
    return error_of([&] { files.entries().at("a").file->read_float("a"); });
  };
  const std::string content = tests::read_file(path);
  EXPECT_EQ(message_of_file(content + "1234"),
            fmt::format("{} has {} bytes here, but {} where its header was read: all ranks need the same file",
                        path.string(), content.size() + 4, content.size()));
  std::string longer_header = content;
  ++longer_header[0];
  EXPECT_THAT(message_of_file(longer_header), HasSubstr("bytes here, but one of "));
}

/// The hub's cache stores files elsewhere and links to them.
TEST(WeightFiles, AShardMayBeALink) {
  const TemporaryDirectory directory;
  write_one(directory / "blobs/0123", "a");
  write_file(directory / "snapshot/model.safetensors.index.json", R"({"weight_map":{"a":"s.safetensors"}})");
  std::filesystem::create_symlink("../blobs/0123", directory / "snapshot/s.safetensors");
  EXPECT_TRUE(WeightFiles(FileReader(), directory / "snapshot").entries().contains("a"));
}

TEST(WeightFiles, TheirTypeIsThatOfMostOfThem) {
  const TemporaryDirectory directory;
  const std::vector<float> many(8, 1.0F), one{1.0F};
  const std::vector<NamedTensor> a{{"a", {8}, many}}, b{{"b", {1}, one}};
  write_file(directory / "model.safetensors.index.json", R"({"weight_map":{"a":"s.safetensors","b":"t.safetensors"}})");
  write_safetensors(directory / "s.safetensors", a, Precision::bfloat16);
  write_safetensors(directory / "t.safetensors", b, Precision::bfloat16);
  EXPECT_EQ(WeightFiles(FileReader(), directory.path()).precision(), Precision::bfloat16);
  // Older Llamas have float buffers beside 16-bit weights.
  write_safetensors(directory / "t.safetensors", b, Precision::float32);
  EXPECT_EQ(WeightFiles(FileReader(), directory.path()).precision(), Precision::bfloat16);
  write_safetensors(directory / "s.safetensors", a, Precision::float32);
  EXPECT_EQ(WeightFiles(FileReader(), directory.path()).precision(), Precision::float32);
}

TEST(WeightFiles, ADanglingLinkIsNamed) {
  for (const char* name : {"model.safetensors", "model.safetensors.index.json"}) {
    const TemporaryDirectory directory;
    std::filesystem::create_symlink("../../blobs/0badcafe", directory / name);
    EXPECT_EQ(message_for(directory), (directory / name).string() +
                                          " is a link to ../../blobs/0badcafe, which does not exist; if it was "
                                          "downloaded, the download is incomplete: repeat it");
    EXPECT_THAT(error_of([&] { (void)has_weight_files(FileReader(), directory.path()); }), HasSubstr("0badcafe"));
  }
}

TEST(WeightFiles, APickleIsRefusedWithTheCommandThatConvertsIt) {
  const TemporaryDirectory directory;
  EXPECT_EQ(message_for(directory), directory.path().string() + " has no model.safetensors");
  write_file(directory / "pytorch_model.bin", "pickle");
  EXPECT_THAT(message_for(directory),
              HasSubstr(" has only pytorch_model.bin, a Python pickle; convert it once, in that "
                        "directory: python3 -c \"import torch, safetensors.torch as s; "));
}

// Weights of torchvision and of scripts, checkpoints of Lightning. What Trainer saves beside them is none.
TEST(WeightFiles, PicklesOfAnyNameAreRefusedByName) {
  for (const char* name : {"resnet50-0676ba61.pth", "epoch=3.ckpt"}) {
    const TemporaryDirectory directory;
    write_file(directory / "optimizer.pt", "pickle");
    EXPECT_FALSE(has_weight_files(FileReader(), directory.path()));
    write_file(directory / name, "pickle");
    EXPECT_TRUE(has_weight_files(FileReader(), directory.path()));
    EXPECT_THAT(message_for(directory), AllOf(HasSubstr(std::string(" has only ") + name + ", a Python pickle; "),
                                              HasSubstr(std::string("w = torch.load('") + name + "', map_location")));
  }
}

}  // namespace
}  // namespace mylos::data
