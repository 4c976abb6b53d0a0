#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/json.hpp"
#include "core/base/python_json.hpp"
#include "data/squad/squad.hpp"

/// The scores of the official SQuAD scripts, to the last digit.
namespace mylos::data {

/// Question id -> predicted text.
using Predictions = std::unordered_map<std::string, std::string>;

/// Question id -> how surely it has no answer (a probability, or null odds), in the file's order, which breaks ties.
struct NoAnswerScores {
  std::vector<std::pair<std::string, Json>> in_order;  ///< the number as it was written: 0 and 0.0 print differently
  std::unordered_map<std::string, double> by_id;
};

/// Of one question, 0 to 1.
struct AnswerScore {
  double exact = 0.0;
  double f1 = 0.0;
};

/// The best over the question's answers by the rules of `version`; an empty prediction says that there is none.
AnswerScore score_answer(const SquadQuestion& question, const std::string& prediction, SquadVersion version);

/// What the official script would print, and the ids of questions that have answers to score but no prediction.
struct SquadScore {
  OrderedJson values;
  std::vector<std::string> missing;
};

/// Reads {"<id>": "<text>", ...}; throws, naming file and id, on anything else.
Predictions read_predictions(const std::filesystem::path& path);
Predictions parse_predictions(std::string_view text, std::string_view name);

/// Reads {"<id>": <number>, ...}; throws, naming file and id, on anything else.
NoAnswerScores read_no_answer_scores(const std::filesystem::path& path);
NoAnswerScores parse_no_answer_scores(std::string_view text, std::string_view name);

/// exact_match and f1 by the rules of v1.1; a missing prediction counts 0. Questions without an `answers` key are not
/// scored. Throws where none is left, or a question's list of answers is empty.
SquadScore score_v1(const SquadDataset& dataset, const Predictions& predictions);

/// exact, f1, total, HasAns_*, NoAns_* by the rules of v2.0; with `no_answer` also best_*: a question with a score
/// above `threshold` counts as answered by nothing. A missing prediction leaves its question out. Questions without an
/// `answers` key are not scored. Throws where none is left, or `no_answer` misses a predicted question.
SquadScore score_v2(const SquadDataset& dataset, const Predictions& predictions,
                    const NoAnswerScores* no_answer = nullptr, double threshold = 1.0);

/// The line (v1.1) or lines (v2.0) that the official script prints, without the last line feed.
std::string official_text(const SquadScore& score, SquadVersion version);

}  // namespace mylos::data
