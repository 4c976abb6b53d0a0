#include "tasks/question_answering/run_answers.hpp"

#include "core/base/files/hdf5_file.hpp"
#include "core/base/files/json.hpp"
#include "core/base/text/quantities.hpp"
#include "data/squad/feature_file.hpp"
#include "data/squad/squad_metrics.hpp"
#include "train/engine/evaluation_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <tuple>

namespace mylos::tasks {
namespace {

namespace fs = std::filesystem;

/// Returns a setting of run.json as text; empty if it is absent or null.
std::string told_text(const train::RunRecord& run, const char* name) {
  const auto found = run.run.find(name);
  return found == run.run.end() || found->is_null() ? std::string() : plain_text(*found);
}

data::SquadDataset read_dataset(const train::RunRecord& run, const fs::path& file) {
  data::SquadDataset dataset = is_hdf5_file(file) ? data::read_feature_file(file).dataset : data::read_squad(file);
  if (const std::string version = told_text(run, "squad"); !version.empty()) {
    dataset.version = data::parse_squad_version(version);
  }
  const auto limit = run.run.find("dev-limit");
  if (limit != run.run.end() && limit->is_number_unsigned()) {
    data::limit_questions(dataset, limit->get<std::size_t>());
  }
  return dataset;
}

}  // namespace

const data::SquadQuestion* Questions::find(const std::string& id) const {
  const auto location = locations.find(id);
  return location == locations.end() ? nullptr : &dataset.questions[location->second];
}

std::optional<double> Questions::f1(const std::string& id, const std::string& answer) const {
  const data::SquadQuestion* question = find(id);
  if (question == nullptr || !question->has_answers_key) return std::nullopt;
  return data::score_answer(*question, answer, dataset.version).f1;
}

Questions read_questions(const train::RunRecord& run) {
  Questions questions;
  const std::string file = told_text(run, "dev");
  std::error_code none;
  if (file.empty()) {
    questions.problem = "run.json names no evaluation data";
  } else if (!fs::exists(file, none)) {
    questions.problem = fmt::format("{} no longer exists", file);
  } else if (!fs::is_regular_file(file, none)) {
    questions.problem = fmt::format("{} is not a regular file and is not read", file);  // reading a pipe may never end
  } else {
    try {
      questions.dataset = read_dataset(run, file);
    } catch (const std::exception& error) {
      questions.problem = error.what();
    }
  }
  for (std::size_t i = 0; i < questions.dataset.questions.size(); ++i) {
    questions.locations.emplace(questions.dataset.questions[i].id, i);
  }
  return questions;
}

bool have_same_questions(const train::RunRecord& one, const train::RunRecord& other) {
  return told_text(one, "dev") == told_text(other, "dev") &&
         told_text(one, "dev-limit") == told_text(other, "dev-limit");
}

std::optional<FinalAnswers> read_final_answers(const train::RunRecord& run) {
  const fs::path& directory = run.directory;
  const std::optional<std::size_t> best = run.best_step();
  for (const train::KeptEvaluation& kept : train::list_evaluations(directory)) {
    if (kept.step != best) continue;
    return FinalAnswers{fmt::format("step {}, the best evaluation", count_text(kept.step)),
                        data::read_short_answers(kept.file), true};
  }
  const fs::path file = directory / "predictions.json";
  std::error_code none;
  if (!fs::is_regular_file(file, none)) return std::nullopt;
  FinalAnswers answers{"predictions.json", {}, false};
  for (auto& [id, text] : data::read_predictions(file)) answers.answers[id] = {text, std::nan("")};
  return answers;
}

std::vector<AnswerChange> changed_answers(const Answers& before, const Answers& after, const Questions& questions) {
  std::vector<AnswerChange> changes;
  for (const auto& [id, answer] : after) {
    const auto found = before.find(id);
    if (found == before.end() || found->second.text == answer.text) continue;
    changes.push_back({id, found->second, answer, questions.f1(id, found->second.text), questions.f1(id, answer.text)});
  }
  const auto kind = [](double gain) { return gain < 0.0 ? 0 : gain > 0.0 ? 1 : 2; };
  std::ranges::sort(changes, {}, [&](const AnswerChange& change) {
    return std::tuple(kind(change.gain()), -std::abs(change.gain()), change.id);
  });
  return changes;
}

std::size_t common_questions(const Answers& before, const Answers& after) {
  return static_cast<std::size_t>(
      std::ranges::count_if(after, [&](const auto& answer) { return before.contains(answer.first); }));
}

std::vector<WrongAnswer> worst_answers(const Answers& answers, const Questions& questions) {
  std::vector<WrongAnswer> wrong;
  for (const auto& [id, answer] : answers) {
    const std::optional<double> f1 = questions.f1(id, answer.text);
    if (f1 && *f1 < 1.0) wrong.push_back({id, answer, *f1});
  }
  const auto surety = [](const WrongAnswer& each) {
    return std::isfinite(each.answer.probability) ? each.answer.probability : 0.0;
  };
  std::ranges::sort(wrong, {}, [&](const WrongAnswer& each) { return std::tuple(each.f1, -surety(each), each.id); });
  return wrong;
}

}  // namespace mylos::tasks
