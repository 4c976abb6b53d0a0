#include "data/huggingface/model_type.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/files/file_reader.hpp"
#include "tests/support/temporary.hpp"

namespace mylos::data {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using tests::error_of;

TEST(ModelType, IsWhatConfigJsonSays) {
  const tests::TemporaryDirectory directory;
  tests::write_file(directory / "config.json", R"({"hidden_size":8,"model_type":"llama"})");
  EXPECT_EQ(model_type_of(FileReader(), directory.path()), "llama");
}

TEST(ModelType, TheOriginalBertsAreKnownByTheirArchitecture) {
  EXPECT_EQ(model_type_of(Json{{"architectures", {"BertForMaskedLM"}}}, "F"), "bert");
  EXPECT_EQ(model_type_of(Json{{"architectures", {"BertForMaskedLM"}}, {"model_type", nullptr}}, "F"), "bert");
  EXPECT_EQ(model_type_of(Json{{"architectures", {"BertForMaskedLM"}}, {"model_type", "toy"}}, "F"), "toy");
}

TEST(ModelType, IsEmptyWhereNothingSaysIt) {
  EXPECT_EQ(model_type_of(Json::object(), "F"), "");
  for (const Json& other : {Json(nullptr), Json::array(), Json({"RobertaModel"}), Json({1}), Json("BertModel")}) {
    EXPECT_EQ(model_type_of(Json{{"architectures", other}}, "F"), "") << other;
  }
}

TEST(ModelType, ErrorsNameTheFile) {
  const tests::TemporaryDirectory directory;
  const auto message = [&] { return error_of([&] { model_type_of(FileReader(), directory.path()); }); };
  EXPECT_THAT(message(), EndsWith("config.json: No such file or directory"));
  tests::write_file(directory / "config.json", "{");
  EXPECT_THAT(message(), HasSubstr("config.json: not JSON at line 1"));
  tests::write_file(directory / "config.json", "[]");
  EXPECT_EQ(message(), (directory / "config.json").string() + ": not a JSON object");
  tests::write_file(directory / "config.json", R"({"model_type":3})");
  EXPECT_EQ(message(), (directory / "config.json").string() + ": model_type = 3 is not a string");
}

}  // namespace
}  // namespace mylos::data
