#include "app/report/report_answers.hpp"

#include "app/report/excerpt.hpp"
#include "app/report/html.hpp"
#include "core/base/quantities.hpp"
#include "core/base/unicode.hpp"
#include "core/base/usage_error.hpp"
#include "tasks/question_answering/question_answering_kind.hpp"
#include "tasks/question_answering/run_answers.hpp"
#include "train/engine/evaluation_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <stdexcept>

namespace mylos::app {
namespace {

using tasks::AnswerChange;
using tasks::Answers;
using tasks::FinalAnswers;
using tasks::Questions;
using tasks::WrongAnswer;

constexpr std::size_t shown_changes = 15, shown_errors = 25;

std::string answer_text(const std::string& text) { return text.empty() ? "(no answer)" : text; }

std::string probability_text(const data::ShortAnswer& answer) {
  return std::isfinite(answer.probability) ? fmt::format("{:.1f} % sure", 100.0 * answer.probability) : std::string();
}

std::string f1_text(const std::optional<double>& f1) {
  return f1 ? fmt::format("F1 {:.0f}", 100.0 * *f1) : std::string();
}

/// Returns "text  (F1 50, 93.1 % sure)".
std::string answer_html(const data::ShortAnswer& answer, const std::optional<double>& f1) {
  std::string notes = f1_text(f1);
  if (const std::string sure = probability_text(answer); !sure.empty()) notes += (notes.empty() ? "" : ", ") + sure;
  return escape_html(answer_text(answer.text)) +
         (notes.empty() ? "" : " " + text_element("span", "class=\"quiet\"", "(" + notes + ")"));
}

/// Returns the distinct correct answers to the question.
std::string gold_text(const Questions::Question& question) {
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

std::string sentence_html(const std::string& context, const CodePointRange& range, const char* mark) {
  const Excerpt excerpt = sentence_around(context, range);
  return escape_html(excerpt.before) + text_element("mark", mark, excerpt.answer) + escape_html(excerpt.after);
}

/// Returns the sentence of the correct answer and, if it does not contain the given answer, the sentence that does.
std::string context_html(const Questions::Dataset& dataset, const Questions::Question& question,
                         const std::string& given) {
  const std::string& context = dataset.contexts[question.context];
  std::string html;
  std::string right_sentence;
  for (const auto& answer : question.answers) {
    if (!answer.aligned) continue;
    const auto length = static_cast<std::uint32_t>(decode_utf8(answer.text).size());
    const auto begin = static_cast<std::uint32_t>(answer.start);
    right_sentence = sentence_around(context, {begin, begin + length}).text();
    html = element("p", "class=\"context\"", sentence_html(context, {begin, begin + length}, ""));
    break;
  }
  if (right_sentence.find(on_one_line(given)) != std::string::npos) return html;
  if (const auto range = find_range(context, given)) {
    html += element("p", "class=\"context\"", sentence_html(context, *range, "class=\"p\""));
  }
  return html;
}

/// Returns a question with its answers. `given` is the answer whose sentence is shown.
std::string item_html(const Questions& questions, const std::string& id, const std::string& given,
                      const std::vector<std::pair<std::string, std::string>>& rows) {
  const Questions::Question* question = questions.find(id);
  std::string html =
      element("p", "class=\"q\"",
              question == nullptr ? "question " + text_element("code", "", id) : escape_html(question->question));
  std::string list;
  if (question != nullptr && question->has_answers_key) {
    list += element("dt", "", "right") + text_element("dd", "", gold_text(*question));
  }
  for (const auto& [name, answer] : rows) list += text_element("dt", "", name) + element("dd", "", answer);
  html += element("dl", "", list);
  if (question != nullptr) html += context_html(questions.dataset, *question, given);
  return element("li", "", html) + "\n";
}

struct ChangeNames {
  std::string before, after;
};

std::string change_items(const std::vector<AnswerChange>& changes, const Questions& questions,
                         const ChangeNames& names) {
  std::string items;
  for (const AnswerChange& change : changes) {
    items += item_html(questions, change.id, change.after.text,
                       {{names.before, answer_html(change.before, change.f1_before)},
                        {names.after, answer_html(change.after, change.f1_after)}});
  }
  return items;
}

/// Returns the first `shown_changes` changes of one kind, under a heading with the total number.
std::string change_list(std::vector<AnswerChange> changes, const char* what, const Questions& questions,
                        const ChangeNames& names) {
  if (changes.empty()) return {};
  const std::size_t all = changes.size();
  changes.resize(std::min(all, shown_changes));
  const std::string more = all > shown_changes ? fmt::format(" ({} of them here)", shown_changes) : std::string();
  return text_element("summary", "", fmt::format("{} {}{}", count_text(all), what, more)) +
         element("ul", "class=\"answers\"", "\n" + change_items(changes, questions, names));
}

std::string changes_html(const Answers& before, const Answers& after, const Questions& questions,
                         const ChangeNames& names) {
  const std::vector<AnswerChange> changes = tasks::changed_answers(before, after, questions);
  std::vector<AnswerChange> worse, better, same;
  for (const AnswerChange& change : changes) {
    (change.gain() < 0.0 ? worse : change.gain() > 0.0 ? better : same).push_back(change);
  }
  const std::size_t both = tasks::common_questions(before, after);
  if (both == 0) {
    return text_element("p", "", fmt::format("{} and {} answered no question in common.", names.before, names.after));
  }
  std::string text = fmt::format("From {} to {}, {} of {} answers changed", names.before, names.after,
                                 count_text(changes.size()), count_text(both));
  if (both < std::max(before.size(), after.size())) text += " (of the questions that both answered)";
  if (!questions.problem.empty()) {
    const std::string list = change_list(changes, "changed", questions, names);
    return text_element("p", "", text + ".") + (list.empty() ? "" : element("details", "open=\"open\"", list));
  }
  std::string html = text_element(
      "p", "", fmt::format("{}: {} better, {} worse, {} as good.", text, better.size(), worse.size(), same.size()));
  bool first = true;
  for (const auto& [list, what] : {std::pair(&worse, "became worse"), std::pair(&better, "became better"),
                                   std::pair(&same, "changed, equally good")}) {
    const std::string items = change_list(*list, what, questions, names);
    if (!items.empty()) html += element("details", first ? "open=\"open\"" : "", items);
    first = first && items.empty();
  }
  return html;
}

const train::KeptEvaluation& kept_after(const std::vector<train::KeptEvaluation>& kept, std::size_t step) {
  const auto found = std::ranges::find(kept, step, &train::KeptEvaluation::step);
  if (found != kept.end()) return *found;
  std::string steps;
  for (const train::KeptEvaluation& each : kept) steps += (steps.empty() ? "" : ", ") + std::to_string(each.step);
  throw UsageError(fmt::format("--between: no answers were kept after step {}, only after steps {}", step,
                               steps.empty() ? "of none" : steps));
}

std::string errors_html(const FinalAnswers& final_answers, const Questions& questions) {
  std::vector<WrongAnswer> wrong = tasks::worst_answers(final_answers.answers, questions);
  const std::size_t all = wrong.size();
  wrong.resize(std::min(all, shown_errors));
  std::string items;
  for (const WrongAnswer& each : wrong) {
    items += item_html(questions, each.id, each.answer.text, {{"answered", answer_html(each.answer, each.f1)}});
  }
  std::string text = fmt::format("{} of {} answers ({}) are not exact matches", count_text(all),
                                 count_text(final_answers.answers.size()), final_answers.origin);
  text += all == 0 ? "." : all > shown_errors ? fmt::format("; the {} with the lowest F1:", shown_errors) : ":";
  text += final_answers.has_probabilities ? "" : " The probabilities of the answers are not known.";
  return text_element("p", "", text) + element("ul", "class=\"answers\"", "\n" + items);
}

/// The two evaluations of a run to compare; nullopt if there are fewer than two.
using EvaluationPair = std::pair<train::KeptEvaluation, train::KeptEvaluation>;
std::optional<EvaluationPair> compared_evaluations(const ReportedRun& run, const StepPair& between) {
  const std::vector<train::KeptEvaluation> kept = train::list_evaluations(run.record.directory);
  if (between) return EvaluationPair{kept_after(kept, between->first), kept_after(kept, between->second)};
  // Skips an evaluation before the first step, when an untrained model would make all answers differ.
  const auto first = std::ranges::find_if(kept, [](const train::KeptEvaluation& each) { return each.step > 0; });
  if (first == kept.end() || first + 1 == kept.end()) return std::nullopt;
  return EvaluationPair{*first, kept.back()};
}

/// The answers of several runs, with the data to judge them.
class AnswerReport {
 public:
  explicit AnswerReport(const std::vector<ReportedRun>& runs) : runs_(runs) {
    for (const ReportedRun& run : runs) {
      const bool same = !questions_.empty() && setting_text(run, "dev") == setting_text(runs.front(), "dev") &&
                        setting_text(run, "dev-limit") == setting_text(runs.front(), "dev-limit");
      questions_.push_back(same ? questions_.front()
                                : std::make_shared<const Questions>(tasks::read_questions(run.record)));
      answers_.emplace_back();
      attempt(run, [&] { answers_.back() = tasks::read_final_answers(run.record); });
    }
  }

  AnswersSection section(const StepPair& between) {
    section_.changes = runs_.size() == 1 ? changes_within(between) : changes_between();
    if (!section_.changes.empty()) section_.changes += problem_html(*questions_.front());
    for (std::size_t i = 0; i < runs_.size(); ++i) section_.errors += errors_of(i);
    return std::move(section_);
  }

 private:
  /// Records an error in a file's content and continues.
  void attempt(const ReportedRun& run, const std::function<void()>& read) {
    try {
      read();
    } catch (const std::runtime_error& error) {
      const std::string problem = runs_.size() > 1 ? fmt::format("{}: {}", run.name, error.what()) : error.what();
      auto& problems = section_.problems;
      if (std::ranges::find(problems, problem) == problems.end()) problems.push_back(problem);
    }
  }

  static std::string problem_html(const Questions& questions) {
    if (questions.problem.empty()) return {};
    return text_element("p", "class=\"note\"",
                        fmt::format("Questions and right answers are not shown: {}.", questions.problem));
  }

  std::string changes_within(const StepPair& between) {
    const std::optional<EvaluationPair> pair = compared_evaluations(runs_.front(), between);
    if (!pair) return {};
    const auto name = [](std::size_t step) { return "step " + count_text(step); };
    std::string html;
    attempt(runs_.front(), [&] {
      html = changes_html(data::read_short_answers(pair->first.file), data::read_short_answers(pair->second.file),
                          *questions_.front(), {name(pair->first.step), name(pair->second.step)});
    });
    return html;
  }

  /// Returns the changes of each run's final answers relative to the first run's.
  std::string changes_between() const {
    std::string html;
    for (std::size_t i = 1; i < runs_.size(); ++i) {
      if (!answers_.front() || !answers_[i]) continue;
      html += changes_html(answers_.front()->answers, answers_[i]->answers, *questions_.front(),
                           {runs_.front().name, runs_[i].name});
    }
    return html;
  }

  std::string errors_of(std::size_t i) const {
    if (!answers_[i]) return {};
    const Questions& questions = *questions_[i];
    const std::string html = questions.problem.empty() ? errors_html(*answers_[i], questions) : problem_html(questions);
    if (runs_.size() == 1) return html;
    return element("details", i == 0 ? "open=\"open\"" : "", text_element("summary", "", runs_[i].name) + html);
  }

  const std::vector<ReportedRun>& runs_;
  std::vector<std::shared_ptr<const Questions>> questions_;
  std::vector<std::optional<FinalAnswers>> answers_;
  AnswersSection section_;
};

bool answers_questions(const ReportedRun& run) { return task_kind_of(run) == &tasks::question_answering(); }

}  // namespace

AnswersSection answers_html(const std::vector<ReportedRun>& runs, const StepPair& between) {
  if (!std::ranges::all_of(runs, answers_questions)) {
    if (between) throw UsageError("--between compares answers, which only runs of question answering have");
    const bool has_some = std::ranges::any_of(runs, answers_questions);
    return has_some ? AnswersSection{.changes = {},
                                     .errors = {},
                                     .problems = {"runs of other tasks have no answers to compare"}}
                    : AnswersSection{};
  }
  return AnswerReport(runs).section(between);
}

}  // namespace mylos::app
