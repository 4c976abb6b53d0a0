#include "tasks/question_answering/question_answering_kind.hpp"

#include "core/base/text/quantities.hpp"
#include "core/base/text/unicode.hpp"
#include "core/base/usage_error.hpp"
#include "tasks/question_answering/excerpt.hpp"
#include "tasks/question_answering/run_answers.hpp"
#include "train/engine/evaluation_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <stdexcept>

namespace mylos::tasks {
namespace {

constexpr std::size_t shown_changes = 15, shown_errors = 25;

/// Returns "text" with the remark "F1 50, 93.1 % sure".
ReportedFact answer_fact(const std::string& name, const data::ShortAnswer& answer, const std::optional<double>& f1) {
  std::string remark = f1 ? fmt::format("F1 {:.0f}", 100.0 * *f1) : std::string();
  if (std::isfinite(answer.probability)) {
    remark += fmt::format("{}{:.1f} % sure", f1 ? ", " : "", 100.0 * answer.probability);
  }
  return {name, answer.text.empty() ? "(no answer)" : answer.text, remark};
}

/// Returns the distinct correct answers to the question.
std::string gold_text(const data::SquadQuestion& question) {
  std::vector<std::string> texts;
  for (const auto& answer : question.answers) {
    if (std::ranges::find(texts, answer.text) == texts.end()) texts.push_back(answer.text);
  }
  std::string all;
  for (const std::string& text : texts) all += (all.empty() ? "" : " | ") + text;
  return all.empty() ? "(no answer)" : all;
}

/// Returns the range of `text` in `context`, in code points; nullopt if it occurs not at all or more than once, because
/// it is then unknown which occurrence the model meant.
std::optional<CodePointRange> find_range(const std::string& context, const std::string& text) {
  const std::size_t at = text.empty() ? std::string::npos : context.find(text);
  if (at == std::string::npos || context.find(text, at + 1) != std::string::npos) return std::nullopt;
  const auto begin = static_cast<std::uint32_t>(decode_utf8(context.substr(0, at)).size());
  return CodePointRange{begin, begin + static_cast<std::uint32_t>(decode_utf8(text).size())};
}

/// Returns the sentence of the correct answer and, if it does not contain the given answer, the sentence that does.
std::vector<ReportedPassage> passages_of(const std::string& context, const data::SquadQuestion& question,
                                         const std::string& given) {
  std::vector<ReportedPassage> passages;
  const auto add = [&](const CodePointRange& range, bool is_predicted) {
    const Excerpt excerpt = sentence_around(context, range);
    passages.push_back({excerpt.before, excerpt.answer, excerpt.after, is_predicted});
    return excerpt.text();
  };
  std::string right_sentence;
  const auto right = std::ranges::find_if(question.answers, [](const auto& answer) { return answer.aligned; });
  if (right != question.answers.end()) {
    const auto begin = static_cast<std::uint32_t>(right->start);
    right_sentence = add({begin, begin + static_cast<std::uint32_t>(decode_utf8(right->text).size())}, false);
  }
  if (right_sentence.find(on_one_line(given)) != std::string::npos) return passages;
  if (const auto range = find_range(context, given)) add(*range, true);
  return passages;
}

/// Returns a question with its answers. `given` is the answer whose sentence is shown.
ReportedSample question_sample(const Questions& questions, const std::string& id, const std::string& given,
                               std::vector<ReportedFact> answers) {
  const data::SquadQuestion* question = questions.find(id);
  if (question == nullptr) return {.title = "question", .id = id, .facts = std::move(answers)};
  if (question->has_answers_key) answers.insert(answers.begin(), {"right", gold_text(*question)});
  return {.title = question->question,
          .facts = std::move(answers),
          .passages = passages_of(questions.dataset.contexts[question->context], *question, given)};
}

struct ChangeNames {
  std::string before, after;
};

/// Adds the first `shown_changes` changes of one kind, under a line with the total number.
void add_changes(const std::vector<AnswerChange>& changes, const char* what, const Questions& questions,
                 const ChangeNames& names, std::vector<ReportedList>& lists) {
  if (changes.empty()) return;
  const std::string more =
      changes.size() > shown_changes ? fmt::format(" ({} of them here)", shown_changes) : std::string();
  ReportedList& list = lists.emplace_back();
  list.fold = fmt::format("{} {}{}", count_text(changes.size()), what, more);
  for (std::size_t i = 0; i < std::min(changes.size(), shown_changes); ++i) {
    const AnswerChange& change = changes[i];
    list.samples.push_back(question_sample(questions, change.id, change.after.text,
                                           {answer_fact(names.before, change.before, change.f1_before),
                                            answer_fact(names.after, change.after, change.f1_after)}));
  }
}

void compare_answers(const Answers& before, const Answers& after, const Questions& questions, const ChangeNames& names,
                     std::vector<ReportedList>& lists) {
  const std::vector<AnswerChange> changes = changed_answers(before, after, questions);
  std::vector<AnswerChange> worse, better, same;
  for (const AnswerChange& change : changes) {
    (change.gain() < 0.0 ? worse : change.gain() > 0.0 ? better : same).push_back(change);
  }
  std::string& text = lists.emplace_back().text;
  const std::size_t both = common_questions(before, after);
  if (both == 0) {
    text = fmt::format("{} and {} answered no question in common.", names.before, names.after);
    return;
  }
  text = fmt::format("From {} to {}, {} of {} answers changed", names.before, names.after, count_text(changes.size()),
                     count_text(both));
  if (both < std::max(before.size(), after.size())) text += " (of the questions that both answered)";
  if (!questions.problem.empty()) {
    text += ".";
    return add_changes(changes, "changed", questions, names, lists);
  }
  text += fmt::format(": {} better, {} worse, {} as good.", better.size(), worse.size(), same.size());
  add_changes(worse, "became worse", questions, names, lists);
  add_changes(better, "became better", questions, names, lists);
  add_changes(same, "changed, equally good", questions, names, lists);
}

const train::KeptEvaluation& kept_after(const std::vector<train::KeptEvaluation>& kept, std::size_t step) {
  const auto found = std::ranges::find(kept, step, &train::KeptEvaluation::step);
  if (found != kept.end()) return *found;
  std::string steps;
  for (const train::KeptEvaluation& each : kept) steps += (steps.empty() ? "" : ", ") + std::to_string(each.step);
  throw UsageError(fmt::format("--between: no answers were kept after step {}, only after steps {}", step,
                               steps.empty() ? "of none" : steps));
}

/// Adds the worst answers to `list`.
void add_errors(const FinalAnswers& final_answers, const Questions& questions, ReportedList& list) {
  const std::vector<WrongAnswer> wrong = worst_answers(final_answers.answers, questions);
  for (std::size_t i = 0; i < std::min(wrong.size(), shown_errors); ++i) {
    const WrongAnswer& each = wrong[i];
    list.samples.push_back(
        question_sample(questions, each.id, each.answer.text, {answer_fact("answered", each.answer, each.f1)}));
  }
  list.text = fmt::format("{} of {} answers ({}) are not exact matches", count_text(wrong.size()),
                          count_text(final_answers.answers.size()), final_answers.origin);
  list.text += wrong.empty()                 ? "."
               : wrong.size() > shown_errors ? fmt::format("; the {} with the lowest F1:", shown_errors)
                                             : ":";
  list.text += final_answers.has_probabilities ? "" : " The probabilities of the answers are not known.";
}

/// The two evaluations of a run to compare; nullopt if there are fewer than two.
using EvaluationPair = std::pair<train::KeptEvaluation, train::KeptEvaluation>;
std::optional<EvaluationPair> compared_evaluations(const train::RunRecord& run, const StepPair& between) {
  const std::vector<train::KeptEvaluation> kept = train::list_evaluations(run.directory);
  if (between) return EvaluationPair{kept_after(kept, between->first), kept_after(kept, between->second)};
  // Skips an evaluation before the first step, when an untrained model would make all answers differ.
  const auto first = std::ranges::find_if(kept, [](const train::KeptEvaluation& each) { return each.step > 0; });
  if (first == kept.end() || first + 1 == kept.end()) return std::nullopt;
  return EvaluationPair{*first, kept.back()};
}

/// The answers of several runs, with the data to judge them.
class AnswerReport {
 public:
  explicit AnswerReport(const ReportedRuns& reported) : runs_(reported.runs), between_(reported.between) {
    for (const ReportedRuns::Run& run : runs_) {
      questions_.push_back(!questions_.empty() && have_same_questions(run.record, runs_.front().record)
                               ? questions_.front()
                               : std::make_shared<const Questions>(read_questions(run.record)));
      answers_.emplace_back();
      attempt(run, [&] { answers_.back() = read_final_answers(run.record); });
    }
  }

  RunReport report() {
    ReportSection changes{.id = "changes", .heading = "Answers that changed"};
    ReportSection errors{.id = "errors", .heading = "Worst errors"};
    runs_.size() == 1 ? add_changes_within(changes.lists) : add_changes_between(changes.lists);
    const std::string problem = note_of(*questions_.front());
    if (!changes.lists.empty() && !problem.empty()) changes.lists.push_back({.note = problem});
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      if (!answers_[i]) continue;
      ReportedList& list =
          errors.lists.emplace_back(ReportedList{.fold = runs_[i].name, .note = note_of(*questions_[i])});
      if (list.note.empty()) add_errors(*answers_[i], *questions_[i], list);
    }
    return {{std::move(changes), std::move(errors)}, std::move(problems_), true};
  }

 private:
  /// Records an error in a file's content and continues.
  void attempt(const ReportedRuns::Run& run, const std::function<void()>& read) {
    try {
      read();
    } catch (const std::runtime_error& error) {
      const std::string problem = problem_of(run, error.what());
      if (std::ranges::find(problems_, problem) == problems_.end()) problems_.push_back(problem);
    }
  }

  static std::string note_of(const Questions& questions) {
    if (questions.problem.empty()) return {};
    return fmt::format("Questions and right answers are not shown: {}.", questions.problem);
  }

  void add_changes_within(std::vector<ReportedList>& lists) {
    const std::optional<EvaluationPair> pair = compared_evaluations(runs_.front().record, between_);
    if (!pair) return;
    const auto name = [](std::size_t step) { return "step " + count_text(step); };
    attempt(runs_.front(), [&] {
      compare_answers(data::read_short_answers(pair->first.file), data::read_short_answers(pair->second.file),
                      *questions_.front(), {name(pair->first.step), name(pair->second.step)}, lists);
    });
  }

  /// Adds the changes of each run's final answers relative to the first run's.
  void add_changes_between(std::vector<ReportedList>& lists) const {
    for (std::size_t i = 1; i < runs_.size(); ++i) {
      if (!answers_.front() || !answers_[i]) continue;
      compare_answers(answers_.front()->answers, answers_[i]->answers, *questions_.front(),
                      {runs_.front().name, runs_[i].name}, lists);
    }
  }

  const std::vector<ReportedRuns::Run>& runs_;
  const StepPair& between_;
  std::vector<std::shared_ptr<const Questions>> questions_;
  std::vector<std::optional<FinalAnswers>> answers_;
  std::vector<std::string> problems_;
};

}  // namespace

RunReport report_answers(const ReportedRuns& runs) {
  if (!runs.are_all) return {.problems = {"runs of other tasks have no answers to compare"}};
  return AnswerReport(runs).report();
}

}  // namespace mylos::tasks
