#include "app/report/report_pictures.hpp"

#include "app/report/html.hpp"
#include "core/base/quantities.hpp"
#include "tasks/image_classification/image_classification_kind.hpp"
#include "tasks/image_classification/run_mistakes.hpp"

#include <fmt/format.h>

#include <cmath>
#include <optional>

namespace mylos::app {
namespace {

using tasks::ImageMistake;
using tasks::MistakePicture;
using tasks::RunMistakes;

/// Returns an image element. A small image is enlarged without interpolation.
std::string picture_html(const MistakePicture& picture, const std::string& label) {
  constexpr std::size_t few = 112;
  if (picture.png.empty()) return text_element("p", "class=\"note\"", picture.problem);
  const bool is_small = picture.width < few && picture.height < few;
  return fmt::format("<img class=\"{}\" alt=\"{}\" src=\"data:image/png;base64,{}\"/>", is_small ? "few" : "many",
                     escape_html(label), base64_text(picture.png));
}

std::string mistake_html(const ImageMistake& mistake, const MistakePicture* picture) {
  const std::string sure =
      std::isfinite(mistake.probability) ? fmt::format("{:.1f} % sure", 100.0 * mistake.probability) : "not finite";
  const std::string position = mistake.file.empty() ? fmt::format("number {}", mistake.index) : mistake.file;
  const std::string facts =
      text_element("dt", "", "label") + text_element("dd", "", mistake.label) + text_element("dt", "", "predicted") +
      element("dd", "",
              escape_html(mistake.predicted) + " " + text_element("span", "class=\"quiet\"", "(" + sure + ")")) +
      text_element("dt", "", "loss") + text_element("dd", "", fixed_text(mistake.loss, 3)) +
      text_element("dt", "", "image") + text_element("dd", "", position);
  return element("li", "",
                 (picture == nullptr ? "" : picture_html(*picture, mistake.label)) + element("dl", "", facts)) +
         "\n";
}

std::string mistakes_html(const RunMistakes& run) {
  const tasks::ImageMistakes& mistakes = run.mistakes;
  std::string text = fmt::format("{} of {} ({}) {} taken for another label", count_text(mistakes.wrong),
                                 count_of(mistakes.images, "image"), run.origin, mistakes.wrong == 1 ? "is" : "are");
  const std::size_t shown = mistakes.worst.size();
  text += shown == 0 ? "." : shown < mistakes.wrong ? fmt::format("; the {} with the largest loss:", shown) : ":";
  std::string html = text_element("p", "", text), items;
  if (!run.problem.empty()) {
    html += text_element("p", "class=\"note\"", fmt::format("The pictures are not shown: {}.", run.problem));
  }
  for (std::size_t i = 0; i < shown; ++i) {
    items += mistake_html(mistakes.worst[i], i < run.pictures.size() ? &run.pictures[i] : nullptr);
  }
  return items.empty() ? html : html + element("ul", "class=\"answers pictures\"", "\n" + items);
}

}  // namespace

std::string pictures_html(const std::vector<ReportedRun>& runs, std::vector<std::string>& problems) {
  std::string html;
  for (const ReportedRun& run : runs) {
    if (task_kind_of(run) != &tasks::image_classification()) continue;
    try {
      const std::optional<RunMistakes> mistakes = tasks::read_run_mistakes(run.record);
      if (!mistakes) continue;
      const std::string of_run = mistakes_html(*mistakes);
      html += runs.size() == 1 ? of_run
                               : element("details", html.empty() ? "open=\"open\"" : "",
                                         text_element("summary", "", run.name) + of_run);
    } catch (const std::runtime_error& error) {
      problems.push_back(runs.size() > 1 ? fmt::format("{}: {}", run.name, error.what()) : error.what());
    }
  }
  return html;
}

}  // namespace mylos::app
