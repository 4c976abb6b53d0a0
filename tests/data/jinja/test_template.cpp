#include "data/jinja/template.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "core/base/files/json.hpp"
#include "core/base/text/unicode.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/paths.hpp"

namespace mylos::data::jinja {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// 4 July 2026, 9:05, as lab/record/chat_templates.py has it.
std::tm recorded_time() {
  std::tm now{};
  now.tm_year = 126;
  now.tm_mon = 6;
  now.tm_mday = 4;
  now.tm_hour = 9;
  now.tm_min = 5;
  now.tm_wday = 6;
  now.tm_yday = 184;
  return now;
}

std::string render(std::string_view source, const std::string& json = "{}") {
  std::vector<std::pair<std::string, Value>> variables;
  const OrderedJson given = try_parse_ordered_json(json);
  for (const auto& [name, value] : given.items()) variables.emplace_back(name, value);
  return Template(source, "chat.jinja").render(variables, recorded_time()).text;
}

std::string template_error(std::string_view source, const std::string& json = "{}") {
  try {
    return "no error: " + render(source, json);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

TEST(Template, EqualsTransformersOnRecordedTemplates) {
  std::ifstream lines(tests::golden_data() / "chat_templates.jsonl");
  std::string line;
  ASSERT_TRUE(std::getline(lines, line));
  const OrderedJson groups = try_parse_ordered_json(line)["variables"];
  std::size_t rows = 0;
  for (; std::getline(lines, line); ++rows) {
    const OrderedJson row = try_parse_ordered_json(line);
    const auto source = row["template"].get<std::string>();
    const std::string variables = groups[row["use"].get<std::string>()].dump();
    if (row.contains("error")) {
      const std::string error = template_error(source, variables);
      EXPECT_THAT(error, StartsWith("chat.jinja, line ")) << source << "\n" << row["error"];
      const auto recorded = row["error"].get<std::string>();
      constexpr std::string_view raised = "TemplateError: ";
      if (recorded.starts_with(raised)) EXPECT_THAT(error, EndsWith("raises: " + recorded.substr(raised.size())));
      continue;
    }
    std::vector<std::pair<std::string, Value>> values;
    for (const auto& [name, value] : groups[row["use"].get<std::string>()].items()) {
      values.emplace_back(name, value);
    }
    const auto rendering = Template(source, source).render(values, recorded_time());
    EXPECT_EQ(rendering.text, row["text"].get<std::string>()) << source;
    OrderedJson spans = OrderedJson::array();
    for (const auto& [begin, end] : rendering.generated) {
      const std::string_view text(rendering.text);
      spans.push_back({count_code_points(text.substr(0, begin)), count_code_points(text.substr(0, end))});
    }
    EXPECT_EQ(spans, row.value("spans", OrderedJson::array())) << source;
  }
  EXPECT_GT(rows, 300U);
}

TEST(Template, RefusesWhatIsNotSupportedWithItsLine) {
  const std::vector<std::pair<std::string_view, std::string_view>> refused = {
      {"a\n{% include 'x' %}", "2: the tag 'include' is not supported"},
      {"{% raw %}a{% endraw %}", "1: the tag 'raw' is not supported"},
      {"\n\n{{ x |\n pprint }}", "4: the filter 'pprint' is not supported"},
      {"{{ 2.5|round }}", "1: the filter 'round' is not supported"},
      {"{{ x is sameas y }}", "1: the test 'sameas' is not supported"},
      {"{{ joiner() }}", "1: 'joiner' is not supported"},
      {"{% for x in y recursive %}{% endfor %}", "1: expected '%}'"},
      {"{% for x in y %}{{ loop.cycle(1, 2) }}{% endfor %}", "1: the method 'cycle' is not supported"},
      {"{{ 'a'.center(3) }}", "1: the method 'center' is not supported"},
      {"{{ 'éa'.title() }}", "1: capitals of letters outside ASCII are not supported"},
      {"{{ 'aéb'.title() }}", "1: capitals after letters outside ASCII are not supported"},
      {"{{ 'é'.upper() }}", "1: capitals of letters outside ASCII are not supported"},
      {"{{ 2 ** 3 }}", "1: expected '}}'"},
      {"{{ 1_000 }}", "1: expected '}}'"},
      {"{{ 1 < 2 < 3 }}", "1: chained comparisons are not supported"},
      {"{% set x | trim %}a{% endset %}", "1: expected '%}'"},
      {"{% macro m() %}{% generation %}{% endgeneration %}{% endmacro %}\n{{ m() }}",
       "1: 'generation' in a macro or a 'set' block is not supported"},
      {"{{ 'a\\x41' }}", "1: an escape of a string other than \\n \\t \\r \\\\ and quotes is not supported"},
      {"{{ 99999999999999999999 }}", "1: a number has more than 64 bits"},
      {"{{ 9999999999 * 9999999999 }}", "1: an integer has more than 64 bits"},
      {"{{ 1|tojson(separators=(1, 2)) }}", "1: a separator of tojson is number, not a string"},
      {"{{ 1|tojson(separators='abc') }}", "1: tojson takes 2 separators"},
      {"{{ range(3) }}", "1: view cannot be written"},
      {"{{ namespace() }}", "1: object cannot be written"},
      {"{% for x in [1] %}{{ loop }}{% endfor %}", "1: object cannot be written"},
      {"{{ ['a']|map('upper') }}", "1: generator cannot be written"},
      {"{{ 'a'.upper }}", "1: function cannot be written"},
      {"{{ {[1]: 1} }}", "1: a key of a dict is list"},
      {"{% call 5 %}{% endcall %}", "1: expected a name"},
      {"{% set n = namespace() %}{% for x in [1] %}{% macro m() %}{% endmacro %}{% set n.m = m %}{% endfor %}\n{{ "
       "n.m() }}",
       "2: the method 'm' is not supported"},
      {"{% set n = namespace() %}{% for x in [1] %}{% macro m() %}{% endmacro %}{% set n.m = [m] %}{% endfor %}{{ "
       "n.m[0]() }}",
       "1: a macro is called after the end of the block that defines it"},
      {"{{ [1]|join('a', attribute='b') }}", "1: the argument 'attribute' is given twice, or not supported"},
      {"{{ 'a'.startswith(('a', 'b')) }}", "1: a prefix is tuple, not a string"},
      {"{{ 'a'.replace('', 'b') }}", "1: an empty separator is not supported"}};
  for (const auto& [source, error] : refused)
    EXPECT_EQ(template_error(source), fmt::format("chat.jinja, line {}", error));
}

TEST(Template, RendersWhatNoRecordedTemplateHas) {
  EXPECT_EQ(render("{{ 7 is odd and 4 is even and 7 is eq(7) and 2 is lt 3 and 'a' is in ['a'] and 7 is ne 8 }}"),
            "True");
  EXPECT_EQ(render("{% set a, b = 1, 'x' %}{{ a }}{{ b }}{% set c %}[{{ a }}]{% endset %}{{ c }}{{ c|length }}"),
            "1x[1]3");
  EXPECT_EQ(render("{{ \"it's a_b 2c\".title() }}, {{ \"it's a_b 2c\"|title }}"), "It'S A_B 2C, It's A_b 2c");
  EXPECT_EQ(render("{{ ['\u00e9\u200d\u3000', '\U000E0001']|string }}"), R"(['é\u200d\u3000', '\U000e0001'])");
  EXPECT_EQ(render("{{ 'é'|tojson(ensure_ascii=false, indent=2) }}{{ none|selectattr('a')|map('upper')|list }}"),
            "\"é\"[]");
  EXPECT_EQ(render("{{ 7 % 4 }} {{ -7 % 4 }} {{ 7 // -2 }} {{ -7.5 // 2 }} {{ -7.5 % 2 }}"), "3 1 -4 -4.0 0.5");
}

TEST(Template, NamesTheLineOfAnError) {
  EXPECT_EQ(template_error("{% if 1 %}\na\n{{ x.y }}{% endif %}"),
            "chat.jinja, line 3: an undefined value has no member 'y'");
  EXPECT_EQ(template_error("\n{{ raise_exception('no ' ~ x) }}", R"({"x": "tools"})"),
            "chat.jinja, line 2: the template raises: no tools");
  EXPECT_EQ(template_error("\n{{ f() }}"), "chat.jinja, line 2: 'f' is no macro or function");
  EXPECT_EQ(template_error("{% if 1 %}"), "chat.jinja, line 1: the block has no 'endif'");
}

TEST(Template, EndsOnHostileTemplates) {
  const std::string many(1000, '(');
  EXPECT_EQ(template_error("{{ " + many + std::string(1000, ')') + " }}"),
            "chat.jinja, line 1: the template nests deeper than 100 levels");
  std::string sum = "{{ 1";
  for (int i = 0; i < 1000; ++i) sum += " + 1";
  EXPECT_EQ(template_error(sum + " }}"), "chat.jinja, line 1: the template nests deeper than 100 levels");
  std::string blocks;
  for (int i = 0; i < 1000; ++i) blocks += "{% if 1 %}";
  EXPECT_EQ(template_error(blocks), "chat.jinja, line 1: the template nests deeper than 100 levels");
  EXPECT_EQ(template_error("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"),
            "chat.jinja, line 1: macros call each other too deeply");
  const std::string loops = "{% for a in range(9999) %}{% for b in range(999) %}{% endfor %}{% endfor %}";
  EXPECT_EQ(template_error(loops), "chat.jinja, line 1: the template takes too many steps");
  EXPECT_EQ(template_error("{{ range(99999999) }}"), "chat.jinja, line 1: range has more than 100000 numbers");
  const std::string doubled =
      "{% set n = namespace(x='a') %}{% for i in range(99) %}{% set n.x = n.x + n.x %}{% endfor %}";
  EXPECT_THAT(template_error(doubled), HasSubstr("a value is larger than 16777216 bytes"));
  const std::string nested = "{% set n = namespace(x=[]) %}{% for i in range(999) %}{% set n.x = [n.x] %}{% endfor %}";
  EXPECT_EQ(template_error(nested), "chat.jinja, line 1: a value nests deeper than 100 levels");
  const std::string shared =
      "{% set n = namespace(x=[1]) %}{% for i in range(90) %}{% set n.x = [n.x, n.x] %}{% endfor %}";
  EXPECT_THAT(template_error(shared), HasSubstr("a value is larger than"));
  EXPECT_EQ(render("{% set n = namespace(x=1) %}{% set n.n = n %}{{ n.n.x }}"), "1");
  EXPECT_THAT(template_error("{{ 'ab' * 99999999 }}"), HasSubstr("a value is larger than"));
  EXPECT_THAT(template_error("{{ 'ab' * 9223372036854775807 }}"), HasSubstr("a value is larger than"));
  EXPECT_THAT(template_error("{{ 'x' * 10000000000 }}"), HasSubstr("a value is larger than"));
  EXPECT_EQ(render("{{ '' * 9223372036854775807 }}"), "");
  EXPECT_THAT(template_error("{{ ('a' * 99999)|replace('a', 'b' * 9999) }}"), HasSubstr("a value is larger than"));
  EXPECT_THAT(template_error("{{ ('a' * 9999)|list|join('b' * 99999) }}"), HasSubstr("takes too many steps"));
  EXPECT_THAT(template_error("{{ ('a' * 9999)|list|tojson(separators=['b' * 99999, ':']) }}"),
              HasSubstr("a value is larger than"));
  EXPECT_EQ(template_error("{{ (',' * 999999).split(',') }}"),
            "chat.jinja, line 1: split gives more than 100000 parts");
  EXPECT_EQ(template_error("{{ [1]|tojson(indent='  ' * 99) }}"),
            "chat.jinja, line 1: the indent 198 of tojson is not in 0..100");
  EXPECT_THAT(template_error("{{ [0] * 9223372036854775807 }}"), HasSubstr("a value is larger than"));
  EXPECT_EQ(template_error(
                "{% macro m() %}{% call m() %}{% endcall %}{{ caller() }}{% endmacro %}{% call m() %}{% endcall %}"),
            "chat.jinja, line 1: macros call each other too deeply");
  const std::string calls = "{% macro m() %}{{ caller() }}{{ caller() }}{% endmacro %}";
  std::string opened, closed;
  for (int i = 0; i < 30; ++i) opened += "{% call m() %}", closed += "{% endcall %}";
  EXPECT_EQ(template_error(calls + opened + "x" + closed), "chat.jinja, line 1: the template takes too many steps");
  EXPECT_THAT(template_error("{{ ('\n' * 999999)|indent(100, true, true) }}"), HasSubstr("a value is larger than"));
  EXPECT_THAT(template_error("{{ " + std::string(99, '-') + "1" + " }}"), HasSubstr("nests deeper"));
  std::string members = "{{ x";
  for (int i = 0; i < 100000; ++i) members += ".y";
  EXPECT_THAT(template_error(members + " }}"), HasSubstr("nests deeper"));
  EXPECT_THAT(template_error("{{ x" + std::string(4000, '\'') + " }}"), HasSubstr("expected"));
}

}  // namespace
}  // namespace mylos::data::jinja
