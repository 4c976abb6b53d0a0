#include "core/base/files/json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temporary.hpp"

namespace mylos {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using tests::error_of;

std::string parse_error(std::string_view text) {
  return error_of([&] { parse_json(text, "f.json"); });
}

TEST(Json, SaysWhereTextIsNotJson) {
  EXPECT_THAT(parse_error("{\n  \"a\": 1,\n  \"é\" x\n}"), StartsWith("f.json: not JSON at line 3, column 7: "));
  EXPECT_THAT(parse_error("hello"), StartsWith("f.json: not JSON at line 1, column 1: "));
  EXPECT_THAT(parse_error("{} x"), StartsWith("f.json: not JSON at line 1, column 4: "));
  EXPECT_THAT(parse_error("{'a': 1}"), StartsWith("f.json: not JSON at line 1, column 2: "));
  EXPECT_THAT(parse_error("[1e999]"), AllOf(StartsWith("f.json: not JSON: "), Not(HasSubstr("json.exception"))));
  EXPECT_EQ(parse_error("{'a'\n}").find('\n'), std::string::npos);
}

TEST(Json, ShortensWhatItQuotes) {
  const std::string token(std::size_t{3} << 20, 'x');
  for (const std::string& text :
       {"{\"a\": \"" + token + "\n\"}", "[\"" + token + "\" 1]", "[1" + std::string(400, '0') + "e9]"}) {
    EXPECT_LT(parse_error(text).size(), 400u) << "of " << text.substr(0, 20);
  }
}

TEST(Json, SaysThatTextEndsTooEarly) {
  const std::string message = "f.json: not JSON at line 1, column 9: the text ends too early; is the file truncated?";
  EXPECT_EQ(parse_error("{\"a\": [1"), message);
  EXPECT_EQ(parse_error("{\"a\": \"b"), message);
}

TEST(Json, ReadsFilesAndNamesBrokenOnes) {
  const tests::TemporaryDirectory directory;
  tests::write_file(directory / "good.json", "{\"a\": [1]}");
  EXPECT_EQ(read_json(directory / "good.json").at("a").size(), 1U);
  EXPECT_THAT(error_of([&] { read_json(directory / "none.json"); }), HasSubstr("none.json: No such file"));
  tests::write_file(directory / "empty.json", "\n");
  EXPECT_THAT(error_of([&] { read_json(directory / "empty.json"); }), HasSubstr("empty.json: the file is empty"));
  tests::write_file(directory / "bytes.json", "{\"a\": \"\xFF\"}");
  EXPECT_THAT(error_of([&] { read_json(directory / "bytes.json"); }), HasSubstr("not UTF-8 at byte 7"));
}

std::string nested(std::size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); }

TEST(Json, DeepNestingIsAnError) {
  EXPECT_EQ(parse_error(nested(100'000)), "f.json: nests deeper than 64 levels at line 1, column 65");
  EXPECT_EQ(parse_error("{\"a\":\n" + nested(64) + "}"), "f.json: nests deeper than 64 levels at line 2, column 64");
  EXPECT_EQ(error_of([&] { parse_json(nested(65), "f.json", [](const std::string&) {}); }),
            "f.json: nests deeper than 64 levels at line 1, column 65");
  EXPECT_TRUE(try_parse_json(nested(65)).is_discarded());
  EXPECT_TRUE(try_parse_ordered_json(nested(65)).is_discarded());
  EXPECT_FALSE(is_json(nested(65)));
  for (const std::string& text : {nested(64), "[" + nested(60) + ", " + nested(60) + "]", '"' + nested(65) + '"',
                                  R"(["\\", "\"[[", )" + nested(63) + "]"}) {
    EXPECT_EQ(parse_error(text), "(nothing was thrown)");
    EXPECT_TRUE(try_parse_json(text) == parse_json(text, "f.json"));
    EXPECT_TRUE(try_parse_ordered_json(text).is_structured() || text.starts_with('"'));
    EXPECT_TRUE(is_json(text));
  }
}

TEST(Json, TextThatIsNoJsonCanBeDiscarded) {
  EXPECT_TRUE(try_parse_json("{\"a\"").is_discarded());
  EXPECT_TRUE(try_parse_ordered_json("").is_discarded());
  EXPECT_FALSE(is_json("[1] 2"));
  EXPECT_EQ(try_parse_ordered_json(R"({"b": 1, "a": 2})").begin().key(), "b");
}

TEST(Json, KeysOfTheOutermostObjectAreTold) {
  std::vector<std::string> keys;
  parse_json(R"({"b": {"x": 1}, "a": [{"y": 2}], "b": 3})", "f.json",
             [&](const std::string& key) { keys.push_back(key); });
  EXPECT_THAT(keys, ::testing::ElementsAre("b", "a", "b"));
}

TEST(Json, ValuesHaveTheTypeAskedFor) {
  const Json json = Json::parse(R"({"s": "x", "n": 1.5, "c": 3, "neg": -1, "b": true, "l": [1], "o": {}, "z": null})");
  const JsonLocation location("f.json");
  EXPECT_EQ(string_member(json, "s", location), "x");
  EXPECT_EQ(as_number(json["n"], location), 1.5);
  EXPECT_EQ(as_number(json["c"], location), 3.0);
  EXPECT_EQ(count_member(json, "c", location), 3U);
  EXPECT_TRUE(as_bool(json["b"], location));
  EXPECT_EQ(list_member(json, "l", location).size(), 1U);
  EXPECT_TRUE(as_object(json["o"], location).empty());
  EXPECT_EQ(find_member(json, "none", location), nullptr);
}

TEST(Json, WrongTypesAreNamedWithTheirPath) {
  const Json json = Json::parse(R"({"s": "x", "n": 1.5, "neg": -1, "l": [1], "z": null})");
  const JsonLocation file("f.json");
  const JsonLocation list(file, "data");
  const JsonLocation location(list, 3);
  EXPECT_EQ(error_of([&] { string_member(json, "n", location); }), "f.json: data[3].n: expected string, found number");
  EXPECT_EQ(error_of([&] { string_member(json, "l", location); }), "f.json: data[3].l: expected string, found list");
  EXPECT_EQ(error_of([&] { list_member(json, "z", location); }), "f.json: data[3].z: expected list, found null");
  EXPECT_EQ(error_of([&] { count_member(json, "s", location); }), "f.json: data[3].s: expected number, found string");
  EXPECT_EQ(error_of([&] { count_member(json, "neg", location); }),
            "f.json: data[3].neg: expected a whole number that is not negative, found -1");
  EXPECT_THAT(error_of([&] { count_member(json, "n", location); }), HasSubstr("found 1.5"));
  EXPECT_EQ(error_of([&] { member(json, "none", location); }), "f.json: data[3]: the key 'none' is missing");
  EXPECT_EQ(error_of([&] { find_member(json["l"], "x", file); }), "f.json: expected object, found list");
  EXPECT_THAT(error_of([&] { as_bool(json["s"], location); }), HasSubstr("data[3]: expected boolean"));
  EXPECT_THAT(error_of([&] { as_number(json["s"], location); }), HasSubstr("data[3]: expected number"));
}

}  // namespace
}  // namespace mylos
