#pragma once

#include <span>
#include <string>

#include "data/answers.hpp"
#include "data/squad.hpp"

/// The files that run_qa writes, byte for byte: objects from question id, four spaces a level, a newline at the end.
namespace mylos::data {

/// predictions.json: id -> text. answers[i] answers questions[i], here and below.
std::string predictions_json(std::span<const SquadQuestion> questions, std::span<const Answer> answers);

/// nbest_predictions.json: id -> [{start_logit, end_logit, text, probability}, ...].
std::string nbest_json(std::span<const SquadQuestion> questions, std::span<const Answer> answers);

/// null_odds.json: id -> null odds; only for answers that have them.
std::string null_odds_json(std::span<const SquadQuestion> questions, std::span<const Answer> answers);

}  // namespace mylos::data
