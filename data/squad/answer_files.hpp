#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "data/squad/answers.hpp"
#include "data/squad/squad.hpp"

/// The output files of run_qa, byte for byte: JSON objects keyed by question id, indented by four spaces per level,
/// with a newline at the end.
namespace mylos::data {

/// Returns predictions.json: id -> text. answers[i] belongs to questions[i], here and below.
std::string predictions_json(std::span<const SquadQuestion> questions, std::span<const Answer> answers);

/// Receives a text in pieces.
using TextSink = std::function<void(std::string_view piece)>;

/// Writes nbest_predictions.json: id -> [{start_logit, end_logit, text, probability}, ...].
void nbest_json(std::span<const SquadQuestion> questions, std::span<const Answer> answers, const TextSink& take);

/// Returns null_odds.json: id -> null odds, for the answers that have them.
std::string null_odds_json(std::span<const SquadQuestion> questions, std::span<const Answer> answers);

/// Returns {"<id>": ["<text>", probability], ...} with one question per line, for comparing evaluations. Not a file of
/// run_qa.
std::string short_answers_json(std::span<const SquadQuestion> questions, std::span<const Answer> answers);

struct ShortAnswer {
  std::string text;
  double probability = 0.0;
};

/// Reads the output of short_answers_json, by question id. Throws std::runtime_error with the file and the id.
std::unordered_map<std::string, ShortAnswer> read_short_answers(const std::filesystem::path& path);

}  // namespace mylos::data
