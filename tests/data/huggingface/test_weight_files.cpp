#include "data/huggingface/weight_files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "data/huggingface/bert_tensors.hpp"
#include "tests/support/temporary.hpp"

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
  return error_of([&] { WeightFiles files(directory.path()); });
}

TEST(WeightFiles, ReadsShardsByTheirIndex) {
  const TemporaryDirectory directory;
  write_one(directory / "model-1.safetensors", "embeddings.LayerNorm.gamma");
  write_one(directory / "model-2.safetensors", "qa_outputs.bias");
  write_file(
      directory / "model.safetensors.index.json",
      R"({"weight_map":{"embeddings.LayerNorm.gamma":"model-1.safetensors","qa_outputs.bias":"model-2.safetensors"}})");
  ASSERT_TRUE(WeightFiles(directory.path()).entries().contains("embeddings.LayerNorm.gamma")) << "as it is named";
  const WeightFiles files(directory.path(), canonical_bert_name);
  ASSERT_EQ(files.entries().size(), 2u);
  const auto& entry = files.entries().at("bert.embeddings.LayerNorm.weight");
  EXPECT_EQ(entry.tensor->name, "embeddings.LayerNorm.gamma");
  EXPECT_EQ(entry.file->path().filename(), "model-1.safetensors");
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
  EXPECT_THAT(message(R"({"weight_map":{"a":"../b"}})"),
              EndsWith("index.json: \"a\" is in \"../b\", which is not a file's name in this directory"));
  EXPECT_THAT(message(R"({"weight_map":{"a":"absent.safetensors"}})"),
              EndsWith("absent.safetensors: No such file or directory"));
  write_one(directory / "s.safetensors", "b");
  EXPECT_THAT(message(R"({"weight_map":{"a":"s.safetensors"}})"),
              EndsWith("index.json: \"a\" should be in s.safetensors, which has no such tensor"));
  write_one(directory / "t.safetensors", "b");
  EXPECT_THAT(message(R"({"weight_map":{"b":"s.safetensors","c":"t.safetensors"}})"),
              EndsWith("t.safetensors: tensor \"b\" is also there as \"b\" in s.safetensors"));
}

TEST(WeightFiles, APickleIsRefusedWithTheCommandThatConvertsIt) {
  const TemporaryDirectory directory;
  EXPECT_EQ(message_for(directory), directory.path().string() + " has no model.safetensors");
  write_file(directory / "pytorch_model.bin", "pickle");
  EXPECT_THAT(message_for(directory),
              HasSubstr(" has only pytorch_model.bin, a Python pickle; convert it once, in that "
                        "directory: python3 -c \"import torch, safetensors.torch as s; "));
}

}  // namespace
}  // namespace mylos::data
