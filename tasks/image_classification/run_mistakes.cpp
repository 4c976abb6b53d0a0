#include "tasks/image_classification/image_classification_kind.hpp"

#include "core/base/error.hpp"
#include "core/base/files/files.hpp"
#include "core/base/files/json.hpp"
#include "core/base/text/quantities.hpp"
#include "data/images/encode_png.hpp"
#include "data/images/resize.hpp"
#include "data/images/synthetic_images.hpp"
#include "tasks/image_classification/image_data.hpp"
#include "tasks/image_classification/image_mistakes.hpp"
#include "tasks/image_classification/picture_notes.hpp"
#include "tasks/interface/task.hpp"
#include "train/engine/data_notes.hpp"
#include "train/engine/evaluation_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <system_error>

namespace mylos::tasks {
namespace {

namespace fs = std::filesystem;

/// Returns a value of run.json, or null if it is absent.
Json recorded_value(const Json& run, std::initializer_list<const char*> path) {
  const Json* value = &run;
  for (const char* key : path) {
    const auto found = value->find(key);
    if (found == value->end()) return {};
    value = &*found;
  }
  return *value;
}

std::optional<std::size_t> recorded_count(const Json& run, std::initializer_list<const char*> path) {
  const Json value = recorded_value(run, path);
  if (!value.is_number_unsigned()) return std::nullopt;
  return value.get<std::size_t>();
}

/// Opens the data that the run was evaluated on. Errors: std::runtime_error if it is missing or has changed.
std::unique_ptr<data::ImageSet> evaluated_images(const train::RunRecord& run) {
  const Json dev = recorded_value(run.run, {"dev"});
  ensure(dev.is_string(), "run.json names no evaluation data");
  const std::string data = dev.get<std::string>();
  std::error_code none;
  ensure(!data::is_synthetic(data), fmt::format("{} is random pixels", data));
  ensure(fs::exists(data, none), fmt::format("{} no longer exists", data));
  ensure(fs::is_directory(data, none) || fs::is_regular_file(data, none),
         fmt::format("{} is not a regular file and is not read", data));  // reading a pipe may never end
  auto set = open_image_data(FileReader(), data, data::ImagePart::test, 0, recorded_count(run.run, {"dev-limit"}));
  const Json checksum = recorded_value(run.run, {"resolved", "checksums", "dev"});
  ensure(!checksum.is_string() || checksum.get<std::string>() == checksum_text(checksum_of(*set)),
         fmt::format("{} has changed since the run", data));
  const fs::path notes = train::notes_file(run.directory, PictureNotes::file_name_of("dev"));
  set->keep_marks(false);
  if (fs::exists(notes, none)) set->marks()->read(read_text(notes));  // decode() then compares the pictures
  return set;
}

data::Image fitted(data::Image image) {
  constexpr std::size_t most = 224;
  const std::size_t side = std::max(image.shape.height, image.shape.width);
  if (side <= most) return image;
  const auto scaled = [&](std::size_t size) { return std::max<std::size_t>(1, (size * most + side / 2) / side); };
  return data::resize(image, scaled(image.shape.height), scaled(image.shape.width));
}

ReportedPicture picture_of(const data::ImageSet& set, const ImageMistake& mistake) {
  try {
    ensure(mistake.index < set.size(), fmt::format("the data has no image {}", mistake.index));
    const data::Image image = fitted(set.decode(mistake.index));
    return {.png = data::encode_png(image),
            .problem = {},
            .width = image.shape.width,
            .height = image.shape.height,
            .label = mistake.label};
  } catch (const std::exception& error) {
    return {.png = {}, .problem = error.what()};
  }
}

ReportedSample sample_of(const ImageMistake& mistake) {
  const std::string sure =
      std::isfinite(mistake.probability) ? fmt::format("{:.1f} % sure", 100.0 * mistake.probability) : "not finite";
  const std::string position = mistake.file.empty() ? fmt::format("number {}", mistake.index) : mistake.file;
  return {.facts = {{"label", mistake.label},
                    {"predicted", mistake.predicted, sure},
                    {.name = "loss", .text = {}, .number = mistake.loss},
                    {"image", position}}};
}

/// Adds the mistakes of the best evaluation that the run kept. Errors: std::runtime_error naming the file of the
/// evaluation.
void add_mistakes(const ReportedRuns::Run& run, std::vector<ReportedList>& lists) {
  const std::vector<train::KeptEvaluation> kept = train::list_evaluations(run.record.directory);
  const auto best = std::ranges::find(kept, run.record.best_step(),
                                      [](const auto& each) { return std::optional<std::size_t>(each.step); });
  if (best == kept.end()) return;
  const ImageMistakes mistakes = read_mistakes(best->file);
  const std::size_t shown = mistakes.worst.size();
  ReportedList& list = lists.emplace_back();
  list.fold = run.name;
  list.text =
      fmt::format("{} of {} (step {}, the best evaluation) {} taken for another label{}", count_text(mistakes.wrong),
                  count_of(mistakes.images, "image"), count_text(best->step), mistakes.wrong == 1 ? "is" : "are",
                  shown == 0               ? "."
                  : shown < mistakes.wrong ? fmt::format("; the {} with the largest loss:", shown)
                                           : ":");
  for (const ImageMistake& each : mistakes.worst) list.samples.push_back(sample_of(each));
  if (shown == 0) return;
  try {
    const std::unique_ptr<data::ImageSet> set = evaluated_images(run.record);
    for (std::size_t i = 0; i < shown; ++i) list.samples[i].picture = picture_of(*set, mistakes.worst[i]);
  } catch (const std::exception& error) {
    list.note = fmt::format("The pictures are not shown: {}.", error.what());
  }
}

}  // namespace

RunReport report_mistakes(const ReportedRuns& runs) {
  RunReport report;
  ReportSection section{.id = "pictures", .heading = "Worst mistakes", .has_pictures = true};
  for (const ReportedRuns::Run& run : runs.runs) {
    try {
      add_mistakes(run, section.lists);
    } catch (const std::runtime_error& error) {
      report.problems.push_back(problem_of(run, error.what()));
    }
  }
  report.sections.push_back(std::move(section));
  return report;
}

}  // namespace mylos::tasks
