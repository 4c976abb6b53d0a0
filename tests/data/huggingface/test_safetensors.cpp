#include "data/huggingface/safetensors.hpp"

#include "core/numeric.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "tests/support/temporary.hpp"
#include "tests/support/written_models.hpp"

namespace mylos::data {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using tests::error_of;
using tests::TemporaryDirectory;
using tests::write_file;

/// Returns a file with this JSON header, followed by these bytes.
std::string with_header(const std::string& json, const std::string& data) {
  const std::uint64_t length = json.size();
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  return bytes + json + data;
}

template <class Element>
std::string bytes_of_all(const std::vector<Element>& elements) {
  return {reinterpret_cast<const char*>(elements.data()), elements.size() * sizeof(Element)};
}

/// Returns the error of opening a file with these bytes. The path at its start becomes "F".
std::string message_for(const std::string& bytes) {
  const TemporaryDirectory directory;
  const auto path = directory / "file.safetensors";
  write_file(path, bytes);
  const auto message = error_of([&] { SafetensorsFile file(FileReader(), path); });
  return message.find(path.string()) == 0 ? fmt::format("F{}", message.substr(path.string().size())) : message;
}

std::string message_for(const std::string& json, std::size_t data_bytes) {
  return message_for(with_header(json, std::string(data_bytes, '\0')));
}

TEST(Safetensors, WhatIsWrittenReadsBackInEveryPrecision) {
  const TemporaryDirectory directory;
  const std::vector<float> values{0.0F, -1.5F, 3.0F, 65504.0F, -0.25F, 1024.0F};
  const std::vector<float> scalar{7.0F};
  const std::vector<NamedTensor> tensors{{"b.weight", {2, 3}, values}, {"a", {}, scalar}, {"empty", {0, 4}, {}}};
  for (const auto precision : {Precision::float32, Precision::bfloat16, Precision::float16}) {
    const auto path = directory / to_string(precision);
    write_safetensors(path, tensors, precision);
    const SafetensorsFile file(FileReader(), path);
    ASSERT_EQ(file.tensors().size(), 3u);
    EXPECT_EQ(file.find("b.weight")->shape, (std::vector<std::size_t>{2, 3}));
    EXPECT_EQ(file.read_float("a"), scalar);
    EXPECT_EQ(file.read_float("empty").size(), 0u);
    EXPECT_EQ(file.metadata().at("format"), "pt");
    const auto back = file.read_float("b.weight");
    for (std::size_t i = 0; i < values.size(); ++i) {
      const float expected = precision == Precision::bfloat16  ? float(bfloat16(values[i]))
                             : precision == Precision::float16 ? float(half(values[i]))
                                                               : values[i];
      EXPECT_EQ(back[i], expected) << to_string(precision) << ' ' << i;
    }
  }
}

TEST(Safetensors, DataStartsAtAMultipleOfEightBytes) {
  const TemporaryDirectory directory;
  const std::vector<float> one{1.0F};
  for (const std::string name : {"a", "ab", "abc", "abcd", "abcde", "abcdef", "abcdefg", "abcdefgh"}) {
    write_safetensors(directory / "f", std::vector<NamedTensor>{{name, {1}, one}});
    EXPECT_EQ((std::filesystem::file_size(directory / "f") - sizeof(float)) % 8, 0u) << name;
  }
}

TEST(Safetensors, ReadsDoublesAndUnalignedData) {
  const TemporaryDirectory directory;
  const auto data = std::string("\x01", 1) + bytes_of_all(std::vector<double>{0.1, -2.0}) +
                    bytes_of_all(std::vector<std::int64_t>{-5, std::int64_t{1} << 40});
  write_file(directory / "f", with_header(R"({"flag":{"dtype":"BOOL","shape":[],"data_offsets":[0,1]},
      "d":{"dtype":"F64","shape":[2],"data_offsets":[1,17]},"i":{"dtype":"I64","shape":[2,1],"data_offsets":[17,33]}})",
                                          data));
  const SafetensorsFile file(FileReader(), directory / "f");
  EXPECT_THAT(file.read_float("d"), ElementsAre(0.1F, -2.0F));
  EXPECT_THAT(file.read_integer("i"), ElementsAre(-5, std::int64_t{1} << 40));
  EXPECT_THAT(error_of([&] { file.read_float("flag"); }),
              EndsWith("tensor \"flag\" has type BOOL, not F16, BF16, F32 or F64"));
  EXPECT_THAT(error_of([&] { file.read_integer("d"); }), EndsWith("tensor \"d\" has type F64, not I32 or I64"));
  EXPECT_THAT(error_of([&] { file.read_float("q\nr"); }), EndsWith("f has no tensor \"q\\x0ar\""));
  EXPECT_THAT(error_of([&] { file.read_integer("q"); }), EndsWith("f has no tensor \"q\""));
  std::vector<float> three(3);
  EXPECT_THAT(error_of([&] { file.read_float("d", 0, three); }),
              HasSubstr("tensor \"d\" of shape (2) has no values 0 to 3"));
  EXPECT_THAT(error_of([&] { file.read_float("d", 3, {}); }), HasSubstr("has no values 3 to 3"));
}

TEST(Safetensors, ReadsALongTensorAndItsRanges) {
  const TemporaryDirectory directory;
  std::vector<float> values((std::size_t{1} << 19) + 3);  // longer than a chunk
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 251);
  for (const auto type : {Precision::float32, Precision::bfloat16, Precision::float16}) {
    const std::vector<NamedTensor> tensors{{"before", {3}, std::span(values).first(3)}, {"t", {values.size()}, values}};
    write_safetensors(directory / "f", tensors, type);
    const SafetensorsFile file(FileReader(), directory / "f");
    EXPECT_EQ(file.read_float("t"), values);
    for (const std::size_t first : {std::size_t{0}, std::size_t{1}, std::size_t{262'145}, values.size()}) {
      std::vector<float> part((values.size() - first) / 2);
      file.read_float("t", first, part);
      EXPECT_TRUE(std::ranges::equal(part, std::span(values).subspan(first, part.size()))) << first;
    }
  }
}

TEST(Safetensors, ValuesMayComeInAnyPieces) {
  const TemporaryDirectory directory;
  const std::vector<TensorShape> tensors{{"a", {2, 2}}, {"b", {3}}};
  const std::vector<float> values{1, 2, 3, 4, 5, 6, 7};
  SafetensorsWriter writer(directory / "f", tensors);
  for (const auto& [first, count] : std::vector<std::pair<std::size_t, std::size_t>>{{0, 0}, {0, 1}, {1, 5}, {6, 1}}) {
    writer.write(std::span(values).subspan(first, count));
  }
  EXPECT_FALSE(std::filesystem::exists(directory / "f"));
  writer.commit();
  const SafetensorsFile file(FileReader(), directory / "f");
  EXPECT_EQ(file.read_float("a"), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(file.read_float("b"), (std::vector<float>{5, 6, 7}));
  SafetensorsWriter shorter(directory / "g", tensors);
  shorter.write(std::span(values).first(6));
  EXPECT_THAT(error_of([&] { shorter.commit(); }), HasSubstr("6 values were written of tensors that have 7"));
  EXPECT_FALSE(std::filesystem::exists(directory / "g"));
}

TEST(Safetensors, WriterRefusesWrongSizesAndRepeatedNames) {
  const TemporaryDirectory directory;
  const std::vector<float> two{1, 2};
  EXPECT_THAT(error_of([&] {
                write_safetensors(directory / "f", std::vector<NamedTensor>{{"t", {3}, two}});
              }),
              HasSubstr("tensor \"t\" of shape (3) has 2 values, not 3"));
  EXPECT_THAT(error_of([&] {
                write_safetensors(directory / "f", std::vector<NamedTensor>{{"t", {2}, two}, {"t", {2}, two}});
              }),
              HasSubstr("tensor \"t\" would be written twice"));
  EXPECT_FALSE(std::filesystem::exists(directory / "f"));
}

TEST(Safetensors, FilesThatAreNotSafetensors) {
  const TemporaryDirectory directory;
  EXPECT_THAT(error_of([&] { SafetensorsFile file(FileReader(), directory / "absent"); }),
              EndsWith("absent: No such file or directory"));
  EXPECT_THAT(error_of([&] { SafetensorsFile file(FileReader(), directory.path()); }), EndsWith("is not a file"));
  ASSERT_EQ(::mkfifo((directory / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(error_of([&] { SafetensorsFile file(FileReader(), directory / "pipe"); }), EndsWith("is not a file"));
  EXPECT_EQ(message_for(""), "F: 0 bytes are too few for a safetensors file; fetch it again");
  EXPECT_EQ(message_for("version https://git-lfs.github.com/spec/v1\n"),
            "F: a git-lfs pointer, not the weights; run `git lfs pull` in its directory");
  EXPECT_EQ(message_for(std::string("\x09\0\0\0\0\0\0\0{}", 10)),
            "F: its header claims 9 bytes, but 2 follow: not a safetensors file, or cut short");
  EXPECT_THAT(message_for("{\"a\"", 0),
              HasSubstr("F: its header: not JSON at line 1, column 5: the text ends too early"));
  EXPECT_THAT(message_for("\xff\xfe\n", 0), HasSubstr("F: its header: not JSON at line 1, column 1: "));
  EXPECT_EQ(message_for("[]", 0), "F: its header is not a JSON object");
  EXPECT_EQ(message_for(std::string(50000, '['), 0), "F: its header: nests deeper than 64 levels at line 1, column 65");
}

TEST(Safetensors, EntriesThatAreWrong) {
  EXPECT_EQ(message_for(R"({"__metadata__":[]})", 0), "F: \"__metadata__\" is not an object");
  EXPECT_EQ(message_for(R"({"__metadata__":{"a":1}})", 0), "F: \"__metadata__\" entry \"a\" is not a string");
  EXPECT_EQ(message_for(R"({"t":1})", 0), "F: tensor \"t\" is not described by an object");
  EXPECT_EQ(message_for(R"({"t":{}})", 0), "F: tensor \"t\" has no \"dtype\"");
  EXPECT_EQ(message_for(R"({"t":{"dtype":7}})", 0), "F: tensor \"t\": \"dtype\" is not a string");
  EXPECT_EQ(message_for(R"({"t":{"dtype":"F\n7"}})", 0), "F: tensor \"t\" has the unknown type F\\x0a7");
  EXPECT_EQ(message_for(R"({"t":{"dtype":"F32"}})", 0), "F: tensor \"t\" has no \"shape\"");
  EXPECT_EQ(message_for(R"({"t":{"dtype":"F32","shape":4}})", 0), "F: tensor \"t\": \"shape\" is not a list");
  for (const std::string bad : {"-1", "1.5", "1e30", "18446744073709551616", "\"4\"", "null"}) {
    EXPECT_THAT(message_for(R"({"t":{"dtype":"F32","shape":[)" + bad + R"(],"data_offsets":[0,4]}})", 4),
                EndsWith(", not a whole number of 0 or more"));
  }
  EXPECT_EQ(message_for(R"({"t":{"dtype":"F32","shape":[1]}})", 0), "F: tensor \"t\" has no \"data_offsets\"");
  EXPECT_EQ(message_for(R"({"t":{"dtype":"F32","shape":[1],"data_offsets":[0]}})", 0),
            "F: tensor \"t\": \"data_offsets\" has 1 numbers, not 2");
}

TEST(Safetensors, OffsetsThatAreWrong) {
  EXPECT_EQ(message_for(R"({"t":{"dtype":"F32","shape":[1],"data_offsets":[8,4]}})", 8),
            "F: tensor \"t\" begins at byte 8 and ends before, at 4");
  EXPECT_EQ(message_for(R"({"t":{"dtype":"F16","shape":[2,3],"data_offsets":[0,24]}})", 24),
            "F: tensor \"t\" of shape (2, 3) and type F16 needs 12 bytes, its offsets [0, 24) hold 24");
  EXPECT_EQ(message_for(R"({"t":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0),
            "F: tensor \"t\" of shape (4294967296, 4294967296) has more elements than can be counted");
  EXPECT_EQ(message_for(R"({"t":{"dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,0]}})", 0),
            "F: tensor \"t\" of shape (4611686018427387904) has more bytes than a file can have");
  EXPECT_EQ(
      message_for(
          R"({"t":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"u":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})",
          6),
      "F: tensor \"u\" begins at byte 2 and overlaps tensor \"t\", which ends at 4");
  EXPECT_EQ(message_for(R"({"t":{"dtype":"U8","shape":[4],"data_offsets":[1,5]}})", 5),
            "F: tensor \"t\" begins at byte 1, leaving a gap from 0");
  EXPECT_EQ(message_for(R"({"t":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", 3),
            "F: tensor \"t\" ends at byte 4, but the file has 3 bytes of data: it was cut short; fetch it again");
  EXPECT_EQ(message_for(R"({"t":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", 5),
            "F: its tensors end at byte 4, but 5 bytes of data follow the header");
  EXPECT_EQ(
      message_for(R"({"t":{"dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,18446744073709551615]}})", 4),
      "F: tensor \"t\" ends at byte 18446744073709551615, but the file has 4 bytes of data: it was cut short; fetch it "
      "again");
  EXPECT_EQ(
      message_for(
          R"({"t":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"t":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
          1),
      "F: tensor \"t\" comes twice");
}

TEST(Safetensors, AFileCutShortAfterItWasOpenedIsAnError) {
  const TemporaryDirectory directory;
  const std::vector<float> values(100, 1.0F);
  write_safetensors(directory / "f", std::vector<NamedTensor>{{"t", {100}, values}});
  const SafetensorsFile file(FileReader(), directory / "f");
  std::filesystem::resize_file(directory / "f", 200);
  EXPECT_THAT(error_of([&] { file.read_float("t"); }), HasSubstr("f: cut short at byte 200 while it was read"));
}

TEST(Safetensors, DamagedFilesAreErrorsOfOneLineAndNeverMore) {
  const TemporaryDirectory directory;
  const std::vector<float> values(6, 1.0F);
  write_safetensors(directory / "f", std::vector<NamedTensor>{{"a.weight", {2, 3}, values}, {"b", {6}, values}});
  const auto whole = tests::read_file(directory / "f");
  std::mt19937 random(7);
  for (int i = 0; i < 500; ++i) {
    auto damaged = whole;
    for (int changes = 0; changes < 3; ++changes) damaged[random() % damaged.size()] = static_cast<char>(random());
    if (i % 4 == 0) damaged.resize(random() % damaged.size());
    EXPECT_EQ(message_for(damaged).find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace mylos::data
