#include "core/base/text/python_json.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace mylos {
namespace {

TEST(PythonJson, WritesOneLineAsJsonDumpsDoes) {
  OrderedJson value;
  value["z"] = 100.0;
  value["a"] = {1, -2, 0.1};
  value["t"] = "é\n\"\x7f😀";
  value["e"] = OrderedJson::array();
  value["o"] = OrderedJson::object();
  value["n"] = nullptr;
  value["b"] = true;
  EXPECT_EQ(
      python_json(value),
      R"({"z": 100.0, "a": [1, -2, 0.1], "t": "\u00e9\n\"\u007f\ud83d\ude00", "e": [], "o": {}, "n": null, "b": true})");
}

TEST(PythonJson, WritesIndentedAsJsonDumpsDoes) {
  OrderedJson value;
  value["exact"] = 1e-7;
  value["list"] = {1};
  EXPECT_EQ(python_json(value, 2), "{\n  \"exact\": 1e-07,\n  \"list\": [\n    1\n  ]\n}");
  EXPECT_EQ(python_json(OrderedJson::object(), 4), "{}");
}

TEST(PythonJson, WritesWhatIsNoNumberAsPythonDoes) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(python_json(OrderedJson::array({infinity, -infinity, std::numeric_limits<double>::quiet_NaN()})),
            "[Infinity, -Infinity, NaN]");
}

}  // namespace
}  // namespace mylos
