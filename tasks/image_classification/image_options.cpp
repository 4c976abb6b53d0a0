#include "tasks/image_classification/image_classification_kind.hpp"

#include "core/base/options/option_kinds.hpp"
#include "data/huggingface/image_processor.hpp"
#include "data/huggingface/label_names.hpp"
#include "families/interface/image_format.hpp"
#include "tasks/image_classification/image_config.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <utility>

namespace mylos::tasks {
namespace {

constexpr std::string_view files = "Model and data", images = "Images";
constexpr std::string_view reads_images = "train eval bench plan";
constexpr std::string_view reads_and_classifies = "train eval bench plan classify";
constexpr std::string_view trains = "train bench plan";

using OwnOption = Option<ImageConfig>;

OwnOption own(std::string name, std::string placeholder, std::string_view section, std::string_view commands,
              std::string help, OptionTraits traits = {}) {
  return named_option<ImageConfig>(std::move(name), std::move(placeholder), section, commands, std::move(help), traits);
}

/// Parses one number per channel. run.json keeps the text, because values in --config cannot be lists.
template <class Field>
OwnOption channels_option(OwnOption option, RealRange range, Field field) {
  option = parsed_option(
      std::move(option), fmt::format("one number, or three separated by commas, each {}", describe(range)), field,
      [range](std::string_view text) {
        auto values = parse_list<float>(text, [&](const std::string& word) { return parse_real(word, range); });
        const bool is_count = values && (values->size() == 1 || values->size() == 3);
        return is_count ? values : std::nullopt;
      });
  option.print = [field](const ImageConfig& config) -> nlohmann::ordered_json {
    if (field(config).empty()) return nullptr;
    return fmt::format("{}", fmt::join(field(config), ","));
  };
  return option;
}

OwnOption augment_option() {
  using data::Augmentation;
  return enumeration_option(
      own("augment", "WHAT", images, trains,
          "augmentation: none; crop-flip: pad by 4 black pixels, crop and flip at random, for CIFAR; imagenet: crop 8 "
          "to 100 % of the area with an aspect ratio from 3/4 to 4/3, resize, and flip, at random"),
      {{"none", {}}, {"crop-flip", {}}, {"imagenet", {}}}, MYLOS_FIELD(augment),
      [](std::string_view name) {
        return name == "none"       ? Augmentation::none
               : name == "imagenet" ? Augmentation::imagenet
                                    : Augmentation::crop_flip;
      },
      [](Augmentation kind) {
        return kind == Augmentation::none ? "none" : kind == Augmentation::imagenet ? "imagenet" : "crop-flip";
      });
}

OwnOption stem_option() {
  return enumeration_option(
      own("stem", "NAME", files, trains,
          "first layers: imagenet (7 x 7 convolution with stride 2, and pooling) or cifar (3 x 3 convolution, for "
          "small "
          "images; not in transformers); default: the model's, else imagenet",
          {.lays_out = true}),
      {{"imagenet", {}}, {"cifar", {}}}, MYLOS_FIELD(stem),
      [](std::string_view name) {
        return name == "cifar" ? families::ImageStem::cifar : families::ImageStem::imagenet;
      },
      name_or_null<families::ImageStem>);
}

OwnOption part_option() {
  using data::ImagePart;
  return enumeration_option(
      own("part", "NAME", files, "prepare",
          "files of a directory of CIFAR or MNIST: training, as --train reads them, or test, as --dev does"),
      {{"training", {}}, {"test", {}}}, MYLOS_FIELD(part),
      [](std::string_view name) { return name == "test" ? ImagePart::test : ImagePart::training; },
      [](ImagePart part) { return part == ImagePart::test ? "test" : "training"; });
}

OwnOption damaged_option() {
  return enumeration_option(
      own("damaged", "WHAT", files, "train eval",
          "damaged pictures: fail; or skip: train takes the next picture of the epoch's order that is not damaged, and "
          "evaluations leave damaged ones out; both count them",
          {.on_resume = OnResume::free}),
      {{"fail", {}}, {"skip", {}}}, MYLOS_FIELD(skips_damaged), [](std::string_view name) { return name == "skip"; },
      [](bool skips) { return skips ? "skip" : "fail"; });
}

std::vector<OwnOption> data_options() {
  return {
      count_or_unset_option(
          own("labels", "N", files, reads_images,
              "number of labels of the model; if a model directory has another number, the last layer is initialised "
              "anew; default: the model's, else the data's, 1000 for synthetic data",
              {.lays_out = true}),
          {1, data::most_labels}, MYLOS_FIELD(labels)),
      stem_option(),
      path_option(
          own("weights", "DIR", files, "train",
              "directory with the weights of a model that --model gives by name, such as resnet50: model.safetensors "
              "with torchvision's, timm's or transformers' names; default: random values"),
          MYLOS_FIELD(weights)),
      path_option(own("order", "FILE", files, "train",
                      "JSON lines, one step per line: a list of image numbers, from 0; replaces shuffling",
                      {.excludes = "train-fraction"}),
                  MYLOS_FIELD(order)),
      damaged_option(),
      part_option(),
      switch_option(own("strict", "", files, "prepare", "fail on a damaged picture, instead of leaving it out",
                        {.on_resume = OnResume::free}),
                    MYLOS_FIELD(strict)),
  };
}

OwnOption batch_norm_option() {
  static constexpr std::string_view rank = "rank";
  OwnOption option = count_or_unset_option(
      own("batch-norm-group", "N|rank", images, trains,
          "number of images that BatchNorm normalises together, the same on any number of ranks; rank: as many as a "
          "rank "
          "has in a batch, as in DDP; default: 32, or the batch if it is smaller",
          {.lays_out = true}),
      {1, 1'000'000}, MYLOS_FIELD(batch_norm_group));
  option.expects += ", or rank";
  option.choices = {std::string(rank)};
  option.parse = [parse = option.parse](ImageConfig& config, std::string_view text) {
    if (text == rank) config.batch_norm_group = batch_of_rank;
    return text == rank || parse(config, text);
  };
  option.print = [print = option.print](const ImageConfig& config) -> nlohmann::ordered_json {
    if (config.batch_norm_group == batch_of_rank) return rank;
    return print(config);
  };
  return option;
}

std::vector<OwnOption> image_size_options() {
  const CountRange sides{1, data::largest_image_side};
  return {
      count_or_unset_option(
          own("image-size", "N", images, reads_and_classifies,
              "height and width of the model's input in pixels; default: those of the data, or of the model's "
              "preprocessor_config.json (which takes precedence in eval and classify), else 224",
              {.lays_out = true}),
          sides, MYLOS_FIELD(image_size)),
      augment_option(),
      channels_option(
          own("mean", "A,B,C", images, reads_and_classifies,
              "mean to subtract from each channel, whose values range from 0 to 1; default: that of the model's "
              "preprocessor_config.json, else that of MNIST or CIFAR if the data are theirs, else ImageNet's"),
          {-unbounded, unbounded}, MYLOS_FIELD(mean)),
      channels_option(own("std", "A,B,C", images, reads_and_classifies,
                          "standard deviation to divide each channel by; default: as for --mean"),
                      {.smallest = 0.0, .largest = unbounded, .open_below = true}, MYLOS_FIELD(deviation)),
      real_option(own("label-smoothing", "X", images, "train",
                      "label smoothing: fraction of a label's weight in the loss that is spread over all labels"),
                  {.smallest = 0.0, .largest = 1.0, .open_above = true}, MYLOS_FIELD(label_smoothing)),
      batch_norm_option(),
      count_option(
          own("loader-threads", "N", images, "train eval prepare bench",
              "threads per rank that decode and augment images for the next steps", {.on_resume = OnResume::free}),
          {1, 1024}, MYLOS_FIELD(loader_threads)),
  };
}

/// Returns the options of Derecho's examples.
std::vector<OwnOption> example_options() {
  return {
      unrecorded(
          switch_option(own("use-syn", "", images, "train",
                            "train on random images of --image-size [224]; the same as --train synthetic:COUNTxHxW",
                            {.excludes = "train"}),
                        MYLOS_FIELD(use_syn))),
      unrecorded(count_option(own("steps-syn", "N", images, "train", "with --use-syn: number of steps per epoch"),
                              {1, 1'000'000'000}, MYLOS_FIELD(steps_syn))),
  };
}

}  // namespace

std::vector<Option<RunConfig>> image_options() {
  std::vector<Option<RunConfig>> all;
  for (const auto part : {data_options, image_size_options, example_options}) append_options(all, part());
  return all;
}

}  // namespace mylos::tasks
