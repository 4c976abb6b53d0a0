#include "tasks/image_classification/image_options.hpp"

#include "core/base/option_kinds.hpp"
#include "data/huggingface/image_processor.hpp"
#include "families/resnet/resnet_config.hpp"
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

OwnOption own(std::string name, std::vector<std::string> aliases, std::string placeholder, std::string_view section,
              std::string_view commands, std::string help, OptionTraits traits = {}) {
  return named_option<ImageConfig>(std::move(name), std::move(aliases), std::move(placeholder), section, commands,
                                   std::move(help), traits);
}

/// Parses one number per channel. run.json keeps the text, because values in --config cannot be lists.
template <class Field>
OwnOption channels_option(OwnOption option, RealRange range, Field field) {
  option.expects = fmt::format("one number, or three separated by commas, each {}", describe(range));
  option.parse = [range, field](ImageConfig& config, std::string_view text) {
    std::vector<float> values;
    for (const std::string& word : split(text, ',')) {
      const auto value = parse_real(word, range);
      if (!value) return false;
      values.push_back(static_cast<float>(*value));
    }
    if (values.size() != 1 && values.size() != 3) return false;
    field(config) = std::move(values);
    return true;
  };
  option.print = [field](const ImageConfig& config) -> nlohmann::ordered_json {
    if (field(config).empty()) return nullptr;
    return fmt::format("{}", fmt::join(field(config), ","));
  };
  return option;
}

OwnOption augment_option() {
  using data::Augmentation;
  return enumeration_option(
      own("augment", {}, "WHAT", images, trains,
          "augmentation: none; crop-flip: pad by 4 black pixels, crop and flip at random, for CIFAR; imagenet: crop 8 "
          "to 100 % of the area with an aspect ratio from 3/4 to 4/3, resize, and flip, at random"),
      {{"none", {}}, {"crop-flip", {}}, {"imagenet", {}}}, [](auto& config) -> auto& { return config.augment; },
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
  OwnOption option = own("stem", {}, "NAME", files, trains,
                         "first layers: imagenet (7 x 7 convolution with stride 2, and pooling) or cifar (3 x 3 "
                         "convolution, for small images; not in transformers); default: the model's, else imagenet",
                         {.lays_out = true});
  option.expects = "imagenet or cifar";
  option.choices = {"imagenet", "cifar"};
  option.parse = [](ImageConfig& config, std::string_view text) {
    if (text != "imagenet" && text != "cifar") return false;
    config.stem = text == "cifar" ? families::ResnetStem::cifar : families::ResnetStem::imagenet;
    return true;
  };
  option.print = [](const ImageConfig& config) -> nlohmann::ordered_json {
    if (!config.stem) return nullptr;
    return std::string(to_string(*config.stem));
  };
  return option;
}

OwnOption part_option() {
  using data::ImagePart;
  return enumeration_option(
      own("part", {}, "NAME", files, "prepare",
          "files of a directory of CIFAR or MNIST: training, as --train reads them, or test, as --dev does"),
      {{"training", {}}, {"test", {}}}, [](auto& config) -> auto& { return config.part; },
      [](std::string_view name) { return name == "test" ? ImagePart::test : ImagePart::training; },
      [](ImagePart part) { return part == ImagePart::test ? "test" : "training"; });
}

OwnOption damaged_option() {
  return enumeration_option(
      own("damaged", {}, "WHAT", files, "train eval",
          "damaged pictures: fail; or skip: train takes the next picture of the epoch's order that is not damaged, and "
          "evaluations leave damaged ones out; both count them",
          {.on_resume = OnResume::free}),
      {{"fail", {}}, {"skip", {}}}, [](auto& config) -> auto& { return config.skips_damaged; },
      [](std::string_view name) { return name == "skip"; }, [](bool skips) { return skips ? "skip" : "fail"; });
}

std::vector<OwnOption> data_options() {
  return {
      count_or_unset_option(
          own("labels", {}, "N", files, reads_images,
              "number of labels of the model; if a model directory has another number, the last layer is initialised "
              "anew; default: the model's, else the data's, 1000 for synthetic data",
              {.lays_out = true}),
          {1, families::most_resnet_labels}, [](auto& config) -> auto& { return config.labels; }),
      stem_option(),
      path_option(
          own("weights", {}, "DIR", files, "train",
              "directory with the weights of a model that --model gives by name, such as resnet50: model.safetensors "
              "with torchvision's, timm's or transformers' names; default: random values"),
          [](auto& config) -> auto& { return config.weights; }),
      path_option(
          own("order", {}, "FILE", files, "train",
              "JSON lines, one step per line: a list of image numbers, from 0; replaces shuffling",
              {.excludes = "train-fraction"}),
          [](auto& config) -> auto& { return config.order; }),
      damaged_option(),
      part_option(),
      switch_option(
          own("strict", {}, "", files, "prepare", "fail on a damaged picture, instead of leaving it out",
              {.on_resume = OnResume::free}),
          [](auto& config) -> auto& { return config.strict; }),
  };
}

OwnOption batch_norm_option() {
  static constexpr std::string_view rank = "rank";
  OwnOption option = count_or_unset_option(
      own("batch-norm-group", {}, "N|rank", images, trains,
          "number of images that BatchNorm normalises together, the same on any number of ranks; rank: as many as a "
          "rank "
          "has in a batch, as in DDP; default: 32, or the batch if it is smaller",
          {.lays_out = true}),
      {1, 1'000'000}, [](auto& config) -> auto& { return config.batch_norm_group; });
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
          own("image-size", {}, "N", images, reads_and_classifies,
              "height and width of the model's input in pixels; default: those of the data, or of the model's "
              "preprocessor_config.json (which takes precedence in eval and classify), else 224",
              {.lays_out = true}),
          sides, [](auto& config) -> auto& { return config.image_size; }),
      augment_option(),
      channels_option(
          own("mean", {}, "A,B,C", images, reads_and_classifies,
              "mean to subtract from each channel, whose values range from 0 to 1; default: that of the model's "
              "preprocessor_config.json, else that of MNIST or CIFAR if the data are theirs, else ImageNet's"),
          {-unbounded, unbounded}, [](auto& config) -> auto& { return config.mean; }),
      channels_option(
          own("std", {}, "A,B,C", images, reads_and_classifies,
              "standard deviation to divide each channel by; default: as for --mean"),
          {.smallest = 0.0, .largest = unbounded, .open_below = true},
          [](auto& config) -> auto& { return config.deviation; }),
      real_option(
          own("label-smoothing", {"label-smoothing-factor"}, "X", images, "train",
              "label smoothing: fraction of a label's weight in the loss that is spread over all labels"),
          {.smallest = 0.0, .largest = 1.0, .open_above = true},
          [](auto& config) -> auto& { return config.label_smoothing; }),
      batch_norm_option(),
      count_option(
          own("loader-threads", {}, "N", images, "train eval prepare bench",
              "threads per rank that decode and augment images for the next steps", {.on_resume = OnResume::free}),
          {1, 1024}, [](auto& config) -> auto& { return config.loader_threads; }),
  };
}

/// Returns the options of Derecho's examples.
std::vector<OwnOption> example_options() {
  return {
      unrecorded(switch_option(
          own("use-syn", {}, "", images, "train",
              "train on random images of --image-size [224]; the same as --train synthetic:COUNTxHxW",
              {.excludes = "train"}),
          [](auto& config) -> auto& { return config.use_syn; })),
      unrecorded(count_option(
          own("steps-syn", {}, "N", images, "train", "with --use-syn: number of steps per epoch"), {1, 1'000'000'000},
          [](auto& config) -> auto& { return config.steps_syn; })),
      meaning_option(
          with_help(own("use-fsdp", {}, "", images, "train plan", "the same as --mode sharded", {.lays_out = true}),
                    {{"compare", "the same as --modes sharded"}}),
          {"mode", "sharded", "modes"}),
      meaning_option(
          own("use-amp", {}, "", images, "train plan", "the same as --precision bfloat16", {.lays_out = true}),
          {"precision", "bfloat16"}),
  };
}

}  // namespace

std::vector<Option<RunConfig>> image_options() {
  std::vector<Option<RunConfig>> all;
  for (const auto part : {data_options, image_size_options, example_options}) append_options(all, part());
  return all;
}

}  // namespace mylos::tasks
