#include "data/squad/squad_metrics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <unordered_set>

#include "core/base/error.hpp"
#include "core/base/files/files.hpp"
#include "core/base/files/json.hpp"
#include "core/base/files/text_file.hpp"
#include "core/base/text/printable.hpp"
#include "core/base/text/python_text.hpp"
#include "core/base/text/unicode.hpp"

namespace mylos::data {
namespace {

/// The scores of one question.
struct Row {
  std::string_view id;
  bool has_answer;
  bool predicts_text;
  double exact;
  double f1;
};

double percent(double sum, std::size_t count) { return 100.0 * sum / static_cast<double>(count); }

/// Returns the best exact match and F1 of `prediction` over `golds`. `empty_f1` is the F1 if both have no words.
Row score_question(const SquadQuestion& question, const std::string& prediction, const std::vector<std::string>& golds,
                   double empty_f1) {
  Row row{question.id, !question.answers.empty(), !prediction.empty(), 0, 0};
  const std::string predicted = normalize_answer(prediction);
  const auto predicted_words = normalized_words(predicted);
  for (const std::string& gold : golds) {
    const auto words = normalized_words(gold);
    const bool is_empty = words.empty() && predicted_words.empty();
    row.exact = std::max(row.exact, predicted == gold ? 1.0 : 0.0);
    row.f1 = std::max(row.f1, is_empty ? empty_f1 : word_f1(predicted_words, words));
  }
  return row;
}

std::vector<std::string> normalized_golds(const SquadQuestion& question) {
  std::vector<std::string> golds;
  for (const SquadAnswer& answer : question.answers) golds.push_back(normalize_answer(answer.text));
  return golds;
}

/// Scores by the rules of v2: for a question without an answer, only the empty prediction is correct.
Row score_question_v2(const SquadQuestion& question, const std::string& prediction) {
  std::vector<std::string> golds = normalized_golds(question);
  std::erase(golds, "");
  if (golds.empty()) golds.emplace_back();
  return score_question(question, prediction, golds, 1);
}

void ensure_scored(std::size_t count, std::string_view what) {
  if (count == 0) fail(fmt::format("nothing to score: {}", what));
}

/// Scores every question that has an `answers` key and a prediction, by the rules of v2.
std::vector<Row> score_rows(const SquadDataset& dataset, const Predictions& predictions, SquadScore& score) {
  std::vector<Row> rows;
  for (const SquadQuestion& question : dataset.questions) {
    if (!question.has_answers_key) continue;
    const auto prediction = predictions.find(question.id);
    if (prediction == predictions.end()) {
      score.missing.push_back(question.id);
      continue;
    }
    rows.push_back(score_question_v2(question, prediction->second));
  }
  return rows;
}

/// Returns the rows with an empty prediction for each question whose no-answer score is above the threshold.
std::vector<Row> apply_threshold(std::vector<Row> rows, const NoAnswerScores* no_answer, double threshold) {
  for (Row& row : rows) {
    double value = 0;
    if (no_answer != nullptr) {
      const auto found = no_answer->by_id.find(std::string(row.id));
      if (found == no_answer->by_id.end()) {
        fail(fmt::format("the no-answer file has no entry for question {}", printable(row.id)));
      }
      value = found->second;
    }
    if (value > threshold) row.exact = row.f1 = row.has_answer ? 0 : 1;
  }
  return rows;
}

void add_averages(OrderedJson& values, const std::vector<Row>& rows, const std::string& prefix) {
  double exact = 0;
  double f1 = 0;
  for (const Row& row : rows) {
    exact += row.exact;
    f1 += row.f1;
  }
  values[prefix + "exact"] = percent(exact, rows.size());
  values[prefix + "f1"] = percent(f1, rows.size());
  values[prefix + "total"] = rows.size();
}

void add_averages_where(OrderedJson& values, const std::vector<Row>& rows, bool has_answer, const std::string& prefix) {
  std::vector<Row> part;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(part),
               [&](const Row& row) { return row.has_answer == has_answer; });
  if (!part.empty()) add_averages(values, part, prefix);
}

/// Adds the best score over all thresholds, and the threshold. Starts with no question answered, which is correct for
/// `unanswerable` questions, and then answers them in the order of increasing no-answer score.
void add_best_threshold(OrderedJson& values, const std::vector<Row>& rows, std::size_t unanswerable,
                        const NoAnswerScores& no_answer, double Row::*score, const std::string& name) {
  std::unordered_map<std::string_view, const Row*> by_id;
  for (const Row& row : rows) by_id.emplace(row.id, &row);
  std::vector<const std::pair<std::string, Json>*> order;
  for (const auto& entry : no_answer.in_order) order.push_back(&entry);
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return a->second.template get<double>() < b->second.template get<double>();
  });
  auto current = static_cast<double>(unanswerable);
  double best = current;
  OrderedJson threshold = 0.0;
  for (const auto* entry : order) {
    const auto found = by_id.find(entry->first);
    if (found == by_id.end()) continue;
    const Row& row = *found->second;
    current += row.has_answer ? row.*score : row.predicts_text ? -1 : 0;
    if (current <= best) continue;
    best = current;
    threshold = entry->second;
  }
  values["best_" + name] = percent(best, rows.size());
  values["best_" + name + "_thresh"] = threshold;
}

/// True for the characters of Python's string.punctuation.
bool is_ascii_punctuation(char32_t c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

bool is_article(std::u32string_view word) { return word == U"a" || word == U"an" || word == U"the"; }

/// Replaces \b(a|an|the)\b, i.e. every run of word characters that is an article, by a space.
std::u32string remove_articles(std::u32string_view text) {
  std::u32string kept;
  kept.reserve(text.size());
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = begin;
    while (end < text.size() && is_python_word(text[end])) ++end;
    const std::u32string_view word = text.substr(begin, end - begin);
    is_article(word) ? kept.push_back(' ') : void(kept.append(word));
    if (end < text.size()) kept.push_back(text[end++]);
    begin = end;
  }
  return kept;
}

}  // namespace

Predictions read_predictions(const std::filesystem::path& path) {
  return parse_predictions(read_text_file(path), path.string());
}

Predictions parse_predictions(std::string_view text, std::string_view name) {
  const Json json = parse_json(text, name);
  const JsonLocation location(name);
  Predictions predictions;
  for (const auto& [id, prediction] : as_object(json, location).items()) {
    predictions.emplace(id, as_string(prediction, JsonLocation(location, printable(id))));
  }
  return predictions;
}

NoAnswerScores read_no_answer_scores(const std::filesystem::path& path) {
  return parse_no_answer_scores(read_text_file(path), path.string());
}

NoAnswerScores parse_no_answer_scores(std::string_view text, std::string_view name) {
  const Json json = parse_json(text, name);
  const JsonLocation location(name);
  NoAnswerScores scores;
  for (const auto& [id, value] : as_object(json, location).items()) {
    scores.by_id.emplace(id, as_number(value, JsonLocation(location, printable(id))));
  }
  // Json sorts its keys; a second pass finds their order in the file.
  std::unordered_set<std::string> seen;
  const auto note_key = [&](const std::string& key) {
    if (seen.insert(key).second) scores.in_order.emplace_back(key, json.at(key));
  };
  [[maybe_unused]] const Json same = parse_json(text, name, note_key);
  return scores;
}

AnswerScore score_answer(const SquadQuestion& question, const std::string& prediction, SquadVersion version) {
  const Row row = version == SquadVersion::v2_0 ? score_question_v2(question, prediction)
                                                : score_question(question, prediction, normalized_golds(question), 0);
  return {row.exact, row.f1};
}

SquadScore score_v1(const SquadDataset& dataset, const Predictions& predictions) {
  SquadScore score;
  std::size_t total = 0;
  double exact = 0;
  double f1 = 0;
  for (const SquadQuestion& question : dataset.questions) {
    if (!question.has_answers_key) continue;
    ++total;
    if (question.answers.empty()) {
      fail(fmt::format("question {} has no answer, which SQuAD 1.1 does not allow; score it as 2.0",
                       printable(question.id)));
    }
    const auto prediction = predictions.find(question.id);
    if (prediction == predictions.end()) {
      score.missing.push_back(question.id);
      continue;
    }
    const Row row = score_question(question, prediction->second, normalized_golds(question), 0);
    exact += row.exact;
    f1 += row.f1;
  }
  ensure_scored(total, "no question has answers");
  score.values["exact_match"] = percent(exact, total);
  score.values["f1"] = percent(f1, total);
  return score;
}

SquadScore score_v2(const SquadDataset& dataset, const Predictions& predictions, const NoAnswerScores* no_answer,
                    double threshold) {
  SquadScore score;
  const std::vector<Row> raw = score_rows(dataset, predictions, score);
  ensure_scored(raw.size(), score.missing.empty() ? "no question has answers" : "no question has a prediction");
  const std::vector<Row> rows = apply_threshold(raw, no_answer, threshold);
  add_averages(score.values, rows, "");
  add_averages_where(score.values, rows, true, "HasAns_");
  add_averages_where(score.values, rows, false, "NoAns_");
  if (no_answer != nullptr) {
    const auto unanswerable = static_cast<std::size_t>(
        std::count_if(dataset.questions.begin(), dataset.questions.end(),
                      [](const SquadQuestion& q) { return q.has_answers_key && q.answers.empty(); }));
    add_best_threshold(score.values, raw, unanswerable, *no_answer, &Row::exact, "exact");
    add_best_threshold(score.values, raw, unanswerable, *no_answer, &Row::f1, "f1");
  }
  return score;
}

std::string official_text(const SquadScore& score, SquadVersion version) {
  return version == SquadVersion::v1_1 ? python_json(score.values) : python_json(score.values, 2);
}

std::string normalize_answer(std::string_view text) {
  std::u32string lowered = python_lower(decode_utf8(text));
  std::erase_if(lowered, is_ascii_punctuation);
  std::string normalized;
  bool is_between_words = false;
  for (const char32_t c : remove_articles(lowered)) {
    if (is_python_space(c)) {
      is_between_words = true;
      continue;
    }
    if (is_between_words && !normalized.empty()) normalized.push_back(' ');
    is_between_words = false;
    append_utf8(normalized, c);
  }
  return normalized;
}

std::vector<std::string_view> normalized_words(std::string_view normalized) {
  std::vector<std::string_view> words;
  while (!normalized.empty()) {
    const std::size_t end = std::min(normalized.find(' '), normalized.size());
    words.push_back(normalized.substr(0, end));
    normalized.remove_prefix(std::min(end + 1, normalized.size()));
  }
  return words;
}

double word_f1(const std::vector<std::string_view>& prediction, const std::vector<std::string_view>& gold) {
  std::unordered_map<std::string_view, std::size_t> left;
  for (const std::string_view word : gold) ++left[word];
  std::size_t same = 0;
  for (const std::string_view word : prediction) {
    const auto found = left.find(word);
    if (found == left.end() || found->second == 0) continue;
    --found->second;
    ++same;
  }
  if (same == 0) return 0;
  // Same order of operations as in the scripts: the last digit depends on it.
  const double precision = 1.0 * static_cast<double>(same) / static_cast<double>(prediction.size());
  const double recall = 1.0 * static_cast<double>(same) / static_cast<double>(gold.size());
  return (2 * precision * recall) / (precision + recall);
}

}  // namespace mylos::data
