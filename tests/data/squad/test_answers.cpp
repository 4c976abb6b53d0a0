#include "data/squad/answers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "tests/support/golden.hpp"
#include "tests/support/temporary.hpp"

namespace mylos::data {
namespace {

using ::testing::HasSubstr;

/// A window that owns the data of its WindowLogits.
struct Window {
  std::vector<float> start;
  std::vector<float> end;
  std::size_t context_position;
  std::vector<CodePointRange> offsets;

  WindowLogits view() const { return {start, end, context_position, offsets}; }
};

/// Returns the window [CLS] q [SEP] A B C [SEP] for the context "A B C".
Window three_tokens(std::vector<float> start, std::vector<float> end) {
  return {std::move(start), std::move(end), 3, {{0, 1}, {2, 3}, {4, 5}}};
}

Answer answer_of(const Window& window, const AnswerOptions& options) {
  const std::vector<WindowLogits> windows = {window.view()};
  return find_answer("A B C", windows, options);
}

AnswerOptions v2() {
  AnswerOptions options;
  options.version = SquadVersion::v2_0;
  return options;
}

TEST(Answers, NoAnswerNeedsMoreThanTheThreshold) {
  const Window window = three_tokens({3, 0, 0, 2, 0, 0, 0}, {2, 0, 0, 2, 0, 0, 0});
  AnswerOptions options = v2();
  options.null_threshold = 1;
  EXPECT_EQ(answer_of(window, options).null_odds, 1.0F);
  EXPECT_EQ(answer_of(window, options).text, "A");
}

TEST(Answers, WithoutAnySpanThereIsAStandIn) {
  Window window = three_tokens({9, 0, 0, 0, 0, 0, 0}, {9, 0, 0, 0, 0, 0, 0});
  window.offsets.clear();
  EXPECT_EQ(answer_of(window, {}).text, "empty");
  const Answer none = answer_of(window, v2());
  EXPECT_EQ(none.text, "");
  EXPECT_EQ(none.null_odds, 18.0F);
  EXPECT_EQ(none.n_best.front().text, "empty");
}

TEST(Answers, NotANumberIsNoCrash) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> all(7, nan);
  EXPECT_NO_THROW(answer_of(three_tokens(all, all), v2()));
  EXPECT_EQ(answer_of(three_tokens({nan, 0, 0, nan, 1, 0, nan}, {nan, 0, 0, 0, 1, 0, nan}), {}).text, "B");
}

TEST(Answers, RefusesWindowsWithoutTheirLogits) {
  Window window = three_tokens({0, 0}, {0, 0});
  EXPECT_THAT(tests::error_of([&] { answer_of(window, {}); }),
              HasSubstr("a window has 2 start and 2 end logits for 3 context tokens from position 3"));
  EXPECT_THAT(tests::error_of([] { find_answer("", {}, {}); }), HasSubstr("without windows"));
}

std::vector<Window> read_windows(const nlohmann::json& rows) {
  std::vector<Window> windows;
  for (const auto& row : rows) {
    Window window{row.at("start"), row.at("end"), row.at("position"), {}};
    for (const auto& pair : row.at("offsets")) window.offsets.push_back({pair[0], pair[1]});
    windows.push_back(std::move(window));
  }
  return windows;
}

void expect_candidates(const std::vector<AnswerCandidate>& candidates, const nlohmann::json& expected) {
  ASSERT_EQ(candidates.size(), expected.size());
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    EXPECT_EQ(candidates[i].text, expected[i].at("text").get<std::string>());
    EXPECT_EQ(candidates[i].range.begin, expected[i].at("range")[0]);
    EXPECT_EQ(candidates[i].range.end, expected[i].at("range")[1]);
    EXPECT_EQ(candidates[i].start_logit, expected[i].at("start_logit").get<float>());
    EXPECT_EQ(candidates[i].end_logit, expected[i].at("end_logit").get<float>());
    EXPECT_NEAR(candidates[i].probability, expected[i].at("probability").get<float>(), 1e-6);
  }
}

TEST(Answers, EveryRuleIsRunQas) {
  const auto rows = tests::golden_lines("answers.jsonl");
  ASSERT_GT(rows.size(), 50U);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    SCOPED_TRACE(i);
    const auto& row = rows[i];
    const auto& switches = row.at("options");
    AnswerOptions options;
    if (switches.at("v2").get<bool>()) options = v2();
    options.n_best = switches.at("n_best");
    options.max_answer_length = switches.at("max_length");
    options.null_threshold = switches.at("threshold");
    const auto owned = read_windows(row.at("windows"));
    std::vector<WindowLogits> windows;
    for (const Window& window : owned) windows.push_back(window.view());
    const Answer answer = find_answer(row.at("context").get<std::string>(), windows, options);
    EXPECT_EQ(answer.text, row.at("text").get<std::string>());
    expect_candidates(answer.n_best, row.at("n_best"));
    ASSERT_EQ(answer.null_odds.has_value(), !row.at("null_odds").is_null());
    if (answer.null_odds) {
      EXPECT_EQ(*answer.null_odds, row.at("null_odds").get<float>());
    }
  }
}

}  // namespace
}  // namespace mylos::data
