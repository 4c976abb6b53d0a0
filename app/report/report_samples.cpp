#include "app/report/report.hpp"

#include "app/report/html.hpp"
#include "core/base/usage_error.hpp"

#include <fmt/format.h>

#include <iterator>

namespace mylos::app {
namespace {

using tasks::ReportedFact;
using tasks::ReportedList;
using tasks::ReportedPassage;
using tasks::ReportedPicture;
using tasks::ReportedSample;

/// Returns an image element. A small image is enlarged without interpolation.
std::string picture_html(const ReportedPicture& picture) {
  constexpr std::size_t few = 112;
  if (picture.png.empty()) return text_element("p", "class=\"note\"", picture.problem);
  const bool is_small = picture.width < few && picture.height < few;
  return fmt::format("<img class=\"{}\" alt=\"{}\" src=\"data:image/png;base64,{}\"/>", is_small ? "few" : "many",
                     escape_html(picture.label), base64_text(picture.png));
}

std::string fact_html(const ReportedFact& fact) {
  const std::string remark =
      fact.remark.empty() ? "" : " " + text_element("span", "class=\"quiet\"", "(" + fact.remark + ")");
  return text_element("dt", "", fact.name) +
         element("dd", "", escape_html(fact.number ? fixed_text(*fact.number, 3) : fact.text) + remark);
}

std::string passage_html(const ReportedPassage& passage) {
  return element("p", "class=\"context\"",
                 escape_html(passage.before) +
                     text_element("mark", passage.is_predicted ? "class=\"p\"" : "", passage.marked) +
                     escape_html(passage.after));
}

std::string sample_html(const ReportedSample& sample) {
  std::string html, facts;
  if (!sample.title.empty()) {
    const std::string id = sample.id.empty() ? "" : " " + text_element("code", "", sample.id);
    html += element("p", "class=\"q\"", escape_html(sample.title) + id);
  }
  if (sample.picture) html += picture_html(*sample.picture);
  for (const ReportedFact& fact : sample.facts) facts += fact_html(fact);
  html += element("dl", "", facts);
  for (const ReportedPassage& passage : sample.passages) html += passage_html(passage);
  return element("li", "", html) + "\n";
}

std::string list_html(const ReportedList& list, bool has_pictures, bool is_open) {
  std::string html, items;
  if (!list.text.empty()) html += text_element("p", "", list.text);
  if (!list.note.empty()) html += text_element("p", "class=\"note\"", list.note);
  for (const ReportedSample& sample : list.samples) items += sample_html(sample);
  if (!items.empty())
    html += element("ul", has_pictures ? "class=\"answers pictures\"" : "class=\"answers\"", "\n" + items);
  if (list.fold.empty()) return html;
  return element("details", is_open ? "open=\"open\"" : "", text_element("summary", "", list.fold) + html);
}

}  // namespace

tasks::RunReport report_of_tasks(const std::vector<ReportedRun>& runs, const tasks::StepPair& between) {
  tasks::RunReport report;
  for (const tasks::TaskKind* kind : tasks::task_kinds()) {
    tasks::ReportedRuns own{.between = between};
    for (const ReportedRun& run : runs) {
      if (task_kind_of(run) == kind) own.runs.push_back({runs.size() > 1 ? run.name : "", run.record});
    }
    if (own.runs.empty()) continue;
    own.are_all = own.runs.size() == runs.size();
    tasks::RunReport of_kind = kind->report(own);
    std::ranges::move(of_kind.sections, std::back_inserter(report.sections));
    std::ranges::move(of_kind.problems, std::back_inserter(report.problems));
    report.compares_steps = report.compares_steps || of_kind.compares_steps;
  }
  if (between && !runs.empty() && !report.compares_steps) {
    throw UsageError("--between compares answers, which only runs of question answering have");
  }
  return report;
}

std::string section_html(const tasks::ReportSection& section) {
  std::string html;
  bool follows_fold = false;
  for (const ReportedList& list : section.lists) {
    html += list_html(list, section.has_pictures, !follows_fold);
    follows_fold = !list.fold.empty();
  }
  return html;
}

}  // namespace mylos::app
