#include "tasks/image_classification/run_mistakes.hpp"

#include "core/base/error.hpp"
#include "core/base/files.hpp"
#include "core/base/json.hpp"
#include "core/base/quantities.hpp"
#include "data/images/encode_png.hpp"
#include "data/images/resize.hpp"
#include "data/images/synthetic_images.hpp"
#include "tasks/image_classification/image_data.hpp"
#include "tasks/image_classification/picture_notes.hpp"
#include "tasks/interface/task.hpp"
#include "train/engine/data_notes.hpp"
#include "train/engine/evaluation_files.hpp"

#include <fmt/format.h>

#include <algorithm>
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
  auto set = open_image_data(data, data::ImagePart::test, 0, recorded_count(run.run, {"dev-limit"}));
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

MistakePicture picture_of(const data::ImageSet& set, std::size_t index) {
  try {
    ensure(index < set.size(), fmt::format("the data has no image {}", index));
    const data::Image image = fitted(set.decode(index));
    return {.png = data::encode_png(image), .problem = {}, .width = image.shape.width, .height = image.shape.height};
  } catch (const std::exception& error) {
    return {.png = {}, .problem = error.what()};
  }
}

}  // namespace

std::optional<RunMistakes> read_run_mistakes(const train::RunRecord& run) {
  const std::vector<train::KeptEvaluation> kept = train::list_evaluations(run.directory);
  const auto best =
      std::ranges::find(kept, run.best_step(), [](const auto& each) { return std::optional<std::size_t>(each.step); });
  if (best == kept.end()) return std::nullopt;
  RunMistakes found{.origin = fmt::format("step {}, the best evaluation", count_text(best->step)),
                    .mistakes = read_mistakes(best->file),
                    .pictures = {},
                    .problem = {}};
  if (found.mistakes.worst.empty()) return found;
  try {
    const std::unique_ptr<data::ImageSet> set = evaluated_images(run);
    for (const ImageMistake& each : found.mistakes.worst) found.pictures.push_back(picture_of(*set, each.index));
  } catch (const std::exception& error) {
    found.problem = error.what();
  }
  return found;
}

}  // namespace mylos::tasks
