#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/files/json.hpp"
#include "core/base/text/python_json.hpp"
#include "data/squad/squad.hpp"

/// The scores of the official SQuAD scripts, identical to the last digit.
namespace mylos::data {

/// Returns the answer in lower case, without ASCII punctuation and articles, with its words joined by single spaces.
std::string normalize_answer(std::string_view text);

/// Splits a normalised answer into words.
std::vector<std::string_view> normalized_words(std::string_view normalized);

/// Returns the F1 score of the words that two normalised answers have in common, counted with multiplicity. 0 if they
/// have none.
double word_f1(const std::vector<std::string_view>& prediction, const std::vector<std::string_view>& gold);

/// Question id -> predicted text.
using Predictions = std::unordered_map<std::string, std::string>;

/// Question id -> score for having no answer (a probability, or null odds), in file order, which breaks ties.
struct NoAnswerScores {
  std::vector<std::pair<std::string, Json>> in_order;  ///< numbers as written: 0 and 0.0 print differently
  std::unordered_map<std::string, double> by_id;
};

/// The scores of one question, from 0 to 1.
struct AnswerScore {
  double exact = 0.0;
  double f1 = 0.0;
};

/// Returns the best score over the question's answers by the rules of `version`. An empty prediction means no answer.
AnswerScore score_answer(const SquadQuestion& question, const std::string& prediction, SquadVersion version);

/// The output of the official script, and the ids of questions that have answers but no prediction.
struct SquadScore {
  OrderedJson values;
  std::vector<std::string> missing;
};

/// Reads {"<id>": "<text>", ...}. Throws with the file and the id on anything else.
Predictions read_predictions(const std::filesystem::path& path);
Predictions parse_predictions(std::string_view text, std::string_view name);

/// Reads {"<id>": <number>, ...}. Throws with the file and the id on anything else.
NoAnswerScores read_no_answer_scores(const std::filesystem::path& path);
NoAnswerScores parse_no_answer_scores(std::string_view text, std::string_view name);

/// Computes exact_match and f1 by the rules of v1.1. A missing prediction counts as 0. Questions without an `answers`
/// key are not scored. Throws if no question is left, or if a question's list of answers is empty.
SquadScore score_v1(const SquadDataset& dataset, const Predictions& predictions);

/// Computes exact, f1, total, HasAns_* and NoAns_* by the rules of v2.0, and best_* with `no_answer`. A question whose
/// score is above `threshold` counts as having an empty prediction. Questions without a prediction or without an
/// `answers` key are not scored. Throws if no question is left, or if `no_answer` lacks a predicted question.
SquadScore score_v2(const SquadDataset& dataset, const Predictions& predictions,
                    const NoAnswerScores* no_answer = nullptr, double threshold = 1.0);

/// Formats the line (v1.1) or lines (v2.0) that the official script prints, without the last line feed.
std::string official_text(const SquadScore& score, SquadVersion version);

}  // namespace mylos::data
