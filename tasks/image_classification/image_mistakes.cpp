#include "tasks/image_classification/image_mistakes.hpp"

#include "core/base/json.hpp"

#include <cmath>

namespace mylos::tasks {
namespace {

/// A number that is not finite is null in JSON.
double number_or_nan(const Json& object, std::string_view key, const JsonPlace& place) {
  const Json& value = member(object, key, place);
  return value.is_null() ? std::nan("") : as_number(value, JsonPlace(place, key));
}

ImageMistake read_mistake(const Json& json, const JsonPlace& place) {
  return {.index = count_member(json, "index", place),
          .file = find_member(json, "file", place) != nullptr ? string_member(json, "file", place) : "",
          .label = string_member(json, "label", place),
          .predicted = string_member(json, "predicted", place),
          .probability = number_or_nan(json, "probability", place),
          .loss = number_or_nan(json, "loss", place)};
}

}  // namespace

std::string mistakes_json(const ImageMistakes& mistakes) {
  nlohmann::ordered_json worst = nlohmann::ordered_json::array();
  for (const ImageMistake& each : mistakes.worst) {
    nlohmann::ordered_json line = {{"index", each.index}};
    if (!each.file.empty()) line["file"] = each.file;
    line.update(
        {{"label", each.label}, {"predicted", each.predicted}, {"probability", each.probability}, {"loss", each.loss}});
    worst.push_back(std::move(line));
  }
  const nlohmann::ordered_json json = {{"images", mistakes.images}, {"wrong", mistakes.wrong}, {"worst", worst}};
  // Names of files and directories need not be UTF-8.
  return json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

ImageMistakes read_mistakes(const std::filesystem::path& path) {
  const Json json = read_json(path);
  const std::string name = path.string();
  const JsonPlace place(name), list(place, "worst");
  ImageMistakes mistakes{
      .images = count_member(json, "images", place), .wrong = count_member(json, "wrong", place), .worst = {}};
  std::size_t i = 0;
  for (const Json& each : list_member(json, "worst", place)) {
    if (i == ImageMistakes::most) list.fail("has more images than a run keeps");
    mistakes.worst.push_back(read_mistake(each, JsonPlace(list, i++)));
  }
  return mistakes;
}

}  // namespace mylos::tasks
