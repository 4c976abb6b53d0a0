#include "tasks/image_classification/image_mistakes.hpp"

#include "core/base/files/json.hpp"

#include <cmath>

namespace mylos::tasks {
namespace {

/// Numbers that are not finite are null in JSON.
double number_or_nan(const Json& object, std::string_view key, const JsonLocation& location) {
  const Json& value = member(object, key, location);
  return value.is_null() ? std::nan("") : as_number(value, JsonLocation(location, key));
}

ImageMistake read_mistake(const Json& json, const JsonLocation& location) {
  return {.index = count_member(json, "index", location),
          .file = find_member(json, "file", location) != nullptr ? string_member(json, "file", location) : "",
          .label = string_member(json, "label", location),
          .predicted = string_member(json, "predicted", location),
          .probability = number_or_nan(json, "probability", location),
          .loss = number_or_nan(json, "loss", location)};
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
  // Names of files and directories might not be valid UTF-8.
  return json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

ImageMistakes read_mistakes(const std::filesystem::path& path) {
  const Json json = read_json(path);
  const std::string name = path.string();
  const JsonLocation location(name), list(location, "worst");
  ImageMistakes mistakes{
      .images = count_member(json, "images", location), .wrong = count_member(json, "wrong", location), .worst = {}};
  std::size_t i = 0;
  for (const Json& each : list_member(json, "worst", location)) {
    if (i == ImageMistakes::most) list.fail("has more images than a run keeps");
    mistakes.worst.push_back(read_mistake(each, JsonLocation(list, i++)));
  }
  return mistakes;
}

}  // namespace mylos::tasks
