#include "tasks/image_classification/image_classification_kind.hpp"

#include <fmt/format.h>

#include "core/base/files/json.hpp"
#include "data/huggingface/label_names.hpp"
#include "tasks/image_classification/classifier_model.hpp"
#include "tasks/image_classification/image_input.hpp"
#include "tasks/interface/trained_model.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace mylos::tasks {
namespace {

/// Gives access to the members of a run's resolved values, each of which may be absent.
class ResolvedRun {
 public:
  explicit ResolvedRun(const Json& resolved) : resolved_(resolved.is_null() ? Json::object() : resolved) {}

  template <class Take>
  void member(const char* key, const Take& take) const {
    if (const Json* value = find_member(resolved_, key, location_)) take(*value, JsonLocation(location_, key));
  }

 private:
  Json resolved_;
  JsonLocation location_{"the checkpoint's configuration, resolved"};
};

struct TrainedClassifier {
  ClassifierModel model;
  ImageInput input;
};

void read_labels(const ResolvedRun& run, std::vector<std::string>& labels) {
  run.member("labels", [&](const Json& value, const JsonLocation& location) {
    const std::size_t count = as_count(value, location);
    constexpr std::size_t most = data::most_labels;
    if (count == 0 || count > most) location.fail(fmt::format("is not 1 to {}", most));
    if (count != labels.size()) labels = data::unnamed_labels(count);
  });
  run.member("label-names", [&](const Json& value, const JsonLocation& location) {
    if (as_list(value, location).size() != labels.size()) location.fail("has another number than labels");
    for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = as_string(value[i], JsonLocation(location, i));
  });
}

/// Reads one number per channel.
void read_channels(const Json& value, const JsonLocation& location, std::size_t channels, std::vector<float>& into) {
  if (as_list(value, location).size() != channels)
    location.fail(fmt::format("is not a list of {} numbers, one for each channel", channels));
  into.clear();
  for (std::size_t i = 0; i < channels; ++i)
    into.push_back(static_cast<float>(as_number(value[i], JsonLocation(location, i))));
}

TrainedClassifier read_trained(const TrainedModel& trained) {
  TrainedClassifier read{.model = read_classifier(FileReader(), trained.model), .input = {}};
  families::ImageModel& images = *read.model.images;
  const ResolvedRun run(trained.resolved);
  read_labels(run, images.labels);
  run.member("channels", [&](const Json& value, const JsonLocation& location) {
    images.channels = as_count(value, location);
    if (images.channels != 1 && images.channels != 3) location.fail("is neither 1 nor 3");
  });
  run.member("stem", [&](const Json& value, const JsonLocation& location) {
    const std::string& stem = as_string(value, location);
    if (stem != "imagenet" && stem != "cifar") location.fail("is neither imagenet nor cifar");
    images.stem = stem == "cifar" ? families::ImageStem::cifar : families::ImageStem::imagenet;
  });
  read.input = resolve_input({}, read.model.processor, nullptr, images.channels, PreferredSize::model);
  run.member("image-size", [&](const Json& value, const JsonLocation& location) {
    read.input.size = as_count(value, location);
    if (read.input.size > data::largest_image_side)
      location.fail(fmt::format("is more than {}", data::largest_image_side));
  });
  run.member("crop-fraction", [&](const Json& value, const JsonLocation& location) {
    read.input.crop_fraction = as_number(value, location);
    // The negated condition also rejects NaN.
    if (!(read.input.crop_fraction >= 0.01 && read.input.crop_fraction <= 1.0)) location.fail("is not 0.01 to 1");
  });
  run.member("warps",
             [&](const Json& value, const JsonLocation& location) { read.input.warps = as_bool(value, location); });
  run.member("resample", [&](const Json& value, const JsonLocation& location) {
    const std::string& filter = as_string(value, location);
    if (filter != "bilinear" && filter != "bicubic") location.fail("is neither bilinear nor bicubic");
    read.input.resampling = filter == "bicubic" ? data::Resampling::bicubic : data::Resampling::bilinear;
  });
  run.member("mean", [&](const Json& value, const JsonLocation& location) {
    read_channels(value, location, images.channels, read.input.mean);
  });
  run.member("std", [&](const Json& value, const JsonLocation& location) {
    read_channels(value, location, images.channels, read.input.deviation);
    if (!std::ranges::all_of(read.input.deviation, [](float one) { return one > 0.0f; }))
      location.fail("is not positive");
  });
  check_size_for_stem(read.input.size, images.stem);
  return read;
}

}  // namespace

ExportedModel export_classifier(const TrainedModel& trained) {
  const TrainedClassifier read = read_trained(trained);
  auto network = make_network(read.model, read.input, Precision::float32);
  auto exporter = image_exporter(*read.model.images, read.input, network->table(),
                                 classifier_precision(FileReader(), trained.run, read.model));
  return {std::move(network), std::move(exporter)};
}

}  // namespace mylos::tasks
