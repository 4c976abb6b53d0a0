#include "data/squad/answer_files.hpp"

#include <fmt/format.h>

#include <functional>

#include "core/base/error.hpp"
#include "core/base/files/files.hpp"
#include "core/base/files/json.hpp"
#include "core/base/text/printable.hpp"
#include "core/base/text/python_json.hpp"

namespace mylos::data {
namespace {

constexpr int run_qa_indent = 4;

void require_one_each(std::span<const SquadQuestion> questions, std::span<const Answer> answers) {
  require(questions.size() == answers.size(),
          fmt::format("{} questions but {} answers", questions.size(), answers.size()));
}

/// Writes the object id -> value(answer) to `take`, one member at a time, and skips answers with a null value. Building
/// the whole object would take some 20 KB per question.
void object_by_id(std::span<const SquadQuestion> questions, std::span<const Answer> answers,
                  const std::function<OrderedJson(const Answer&)>& value, const TextSink& take) {
  require_one_each(questions, answers);
  constexpr std::size_t opening = 1, closing = 2;  // "{" before a member, and "\n}" after it
  bool is_first = true;
  for (std::size_t i = 0; i < questions.size(); ++i) {
    OrderedJson json = value(answers[i]);
    if (json.is_null()) continue;
    const std::string member = python_json(OrderedJson{{questions[i].id, std::move(json)}}, run_qa_indent);
    take(is_first ? "{" : ",");
    take(std::string_view(member).substr(opening, member.size() - opening - closing));
    is_first = false;
  }
  take(is_first ? "{}\n" : "\n}\n");
}

std::string object_text(std::span<const SquadQuestion> questions, std::span<const Answer> answers,
                        const std::function<OrderedJson(const Answer&)>& value) {
  std::string text;
  object_by_id(questions, answers, value, [&](std::string_view piece) { text += piece; });
  return text;
}

OrderedJson candidate_json(const AnswerCandidate& candidate) {
  return {{"start_logit", static_cast<double>(candidate.start_logit)},
          {"end_logit", static_cast<double>(candidate.end_logit)},
          {"text", candidate.text},
          {"probability", static_cast<double>(candidate.probability)}};
}

}  // namespace

std::string predictions_json(std::span<const SquadQuestion> questions, std::span<const Answer> answers) {
  return object_text(questions, answers, [](const Answer& answer) { return OrderedJson(answer.text); });
}

void nbest_json(std::span<const SquadQuestion> questions, std::span<const Answer> answers, const TextSink& take) {
  const auto candidates = [](const Answer& answer) {
    OrderedJson list = OrderedJson::array();
    for (const AnswerCandidate& candidate : answer.n_best) list.push_back(candidate_json(candidate));
    return list;
  };
  object_by_id(questions, answers, candidates, take);
}

std::string null_odds_json(std::span<const SquadQuestion> questions, std::span<const Answer> answers) {
  return object_text(questions, answers, [](const Answer& answer) {
    return answer.null_odds ? OrderedJson(static_cast<double>(*answer.null_odds)) : OrderedJson();
  });
}

std::string short_answers_json(std::span<const SquadQuestion> questions, std::span<const Answer> answers) {
  require_one_each(questions, answers);
  std::string text;
  for (std::size_t i = 0; i < questions.size(); ++i) {
    text += fmt::format("{}{}: [{}, {:.4g}]", i == 0 ? "" : ",\n", Json(questions[i].id).dump(),
                        Json(answers[i].text).dump(), answers[i].probability);
  }
  return "{" + text + "}\n";
}

std::unordered_map<std::string, ShortAnswer> read_short_answers(const std::filesystem::path& path) {
  const Json json = read_json(path);
  const std::string name = path.string();
  const JsonLocation location(name);
  std::unordered_map<std::string, ShortAnswer> answers;
  for (const auto& [id, pair] : as_object(json, location).items()) {
    const std::string shown = printable(id);
    const JsonLocation at(location, shown);
    if (as_list(pair, at).size() != 2) at.fail("expected a text and a probability");
    answers.emplace(id, ShortAnswer{as_string(pair[0], JsonLocation(at, std::size_t{0})),
                                    as_number(pair[1], JsonLocation(at, std::size_t{1}))});
  }
  return answers;
}

}  // namespace mylos::data
