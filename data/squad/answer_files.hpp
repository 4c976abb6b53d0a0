#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "data/squad/answers.hpp"
#include "data/squad/squad.hpp"

/// The files that run_qa writes, byte for byte: objects from question id, four spaces a level, a newline at the end.
namespace mylos::data {

/// predictions.json: id -> text. answers[i] answers questions[i], here and below.
std::string predictions_json(std::span<const SquadQuestion> questions, std::span<const Answer> answers);

/// Takes a text in pieces.
using TextSink = std::function<void(std::string_view piece)>;

/// nbest_predictions.json: id -> [{start_logit, end_logit, text, probability}, ...].
void nbest_json(std::span<const SquadQuestion> questions, std::span<const Answer> answers, const TextSink& take);

/// null_odds.json: id -> null odds; only for answers that have them.
std::string null_odds_json(std::span<const SquadQuestion> questions, std::span<const Answer> answers);

/// Not run_qa's: {"<id>": ["<text>", probability], ...}, a line a question, for comparing evaluations.
std::string short_answers_json(std::span<const SquadQuestion> questions, std::span<const Answer> answers);

struct ShortAnswer {
  std::string text;
  double probability = 0.0;
};

/// Reads what short_answers_json wrote, by question id. Errors: std::runtime_error naming file and id.
std::unordered_map<std::string, ShortAnswer> read_short_answers(const std::filesystem::path& path);

}  // namespace mylos::data
