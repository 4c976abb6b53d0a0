#include "data/answer_files.hpp"

#include <fmt/format.h>

#include <functional>

#include "core/error.hpp"
#include "data/files.hpp"
#include "data/json.hpp"
#include "data/python_json.hpp"

namespace mylos::data {
namespace {

constexpr int run_qa_indent = 4;

void require_one_each(std::span<const SquadQuestion> questions, std::span<const Answer> answers) {
  require(questions.size() == answers.size(),
          fmt::format("{} questions but {} answers", questions.size(), answers.size()));
}

/// The object id -> value(answer), without the answers for which it is null.
std::string object_by_id(std::span<const SquadQuestion> questions, std::span<const Answer> answers,
                         const std::function<OrderedJson(const Answer&)>& value) {
  require_one_each(questions, answers);
  // Members are appended without the search for the key that operator[] makes: ids are unique, and there are many.
  OrderedJson::object_t object;
  for (std::size_t i = 0; i < questions.size(); ++i) {
    OrderedJson json = value(answers[i]);
    if (!json.is_null()) object.push_back({questions[i].id, std::move(json)});
  }
  return python_json(object, run_qa_indent) + "\n";
}

OrderedJson candidate_json(const AnswerCandidate& candidate) {
  return {{"start_logit", static_cast<double>(candidate.start_logit)},
          {"end_logit", static_cast<double>(candidate.end_logit)},
          {"text", candidate.text},
          {"probability", static_cast<double>(candidate.probability)}};
}

}  // namespace

std::string predictions_json(std::span<const SquadQuestion> questions, std::span<const Answer> answers) {
  return object_by_id(questions, answers, [](const Answer& answer) { return OrderedJson(answer.text); });
}

std::string nbest_json(std::span<const SquadQuestion> questions, std::span<const Answer> answers) {
  return object_by_id(questions, answers, [](const Answer& answer) {
    OrderedJson list = OrderedJson::array();
    for (const AnswerCandidate& candidate : answer.n_best) list.push_back(candidate_json(candidate));
    return list;
  });
}

std::string null_odds_json(std::span<const SquadQuestion> questions, std::span<const Answer> answers) {
  return object_by_id(questions, answers, [](const Answer& answer) {
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
  const JsonPlace place(name);
  std::unordered_map<std::string, ShortAnswer> answers;
  for (const auto& [id, pair] : as_object(json, place).items()) {
    const std::string shown = printable(id);
    const JsonPlace at(place, shown);
    if (as_list(pair, at).size() != 2) at.fail("expected a text and a probability");
    answers.emplace(id, ShortAnswer{as_string(pair[0], JsonPlace(at, std::size_t{0})),
                                    as_number(pair[1], JsonPlace(at, std::size_t{1}))});
  }
  return answers;
}

}  // namespace mylos::data
