#include "tasks/image_classification/image_classification_kind.hpp"

#include "core/base/text/quantities.hpp"
#include "data/huggingface/label_names.hpp"
#include "families/model_directory.hpp"
#include "families/model_families.hpp"
#include "tasks/image_classification/image_task.hpp"

#include <fmt/format.h>

#include <utility>

namespace mylos::tasks {
namespace {

/// Number of images in plans without data: ImageNet's.
constexpr std::size_t imagenet_images = 1'281'167;

/// Returns the model's directory, or its name if it has built-in sizes, also under the name that its weights are
/// fetched by.
std::filesystem::path find_model(const std::string& name) {
  const data::KnownModel* known = families::find_known_model(name, families::BodyOutput::images);
  return known != nullptr ? std::filesystem::path(known->name) : families::resolve_model(FileReader(), name);
}

}  // namespace

PlannedRun plan_images(const std::string& name, const std::filesystem::path& data, const RunConfig& run,
                       const Notice& notice) {
  RunConfig config = run;
  config.task.model = find_model(name);
  PlannedRun planned{.config = config, .name = name, .model = name, .network = nullptr};
  if (!data.empty()) {
    config.task.train = data;
    const ImageTask task(FileReader(), config, notice);
    planned.samples = std::make_shared<GroupStream>(*task.stream());
    planned.network = make_network(task.classifier(), task.input(), run.engine.precision);
    planned.data = fmt::format("{}: {}", data.string(), task.train_text());
  } else {
    ImageConfig& images = image_config(config);
    ClassifierModel model = read_classifier(FileReader(), config.task.model);
    choose_stem(FileReader(), model, images.stem);
    if (images.labels > 0) model.images->labels = data::unnamed_labels(images.labels);
    const ImageInput input =
        resolve_input(images, model.processor, nullptr, model.images->channels, PreferredSize::model);
    const std::size_t group = group_size(images, run.task.batch);
    planned.samples = std::make_shared<GroupStream>(imagenet_images, run.task.batch, group, run.engine.seed);
    planned.network = make_network(model, input, run.engine.precision);
    planned.data = fmt::format("{}, as ImageNet has, of {} x {} pixels; --data DATA plans for these data",
                               count_of(imagenet_images, "image"), input.size, input.size);
    planned.data_options = "--train DATA";
  }
  planned.work = planned.samples->work();
  return planned;
}

}  // namespace mylos::tasks
