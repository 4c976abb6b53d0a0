#include "data/huggingface/image_processor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>

#include "core/base/error.hpp"
#include "core/base/files/files.hpp"
#include "core/base/files/json.hpp"
#include "data/huggingface/config_reader.hpp"

namespace mylos::data {
namespace {

constexpr double scale = 1.0 / 255.0;
constexpr int bilinear = 2, bicubic = 3;  // Pillow's numbers of its filters
/// ConvNext crops below this size in pixels, and warps from this size on.
constexpr std::size_t least_warped = 384;
constexpr double usual_crop = 224.0 / 256.0;
constexpr std::size_t usual_crop_size = 224;

using Channels = std::array<float, 3>;
constexpr Channels halves{0.5f, 0.5f, 0.5f}, clip_mean{0.48145466f, 0.4578275f, 0.40821073f},
    clip_deviation{0.26862954f, 0.26130258f, 0.27577711f};

/// A class of image processors in transformers, and the defaults of its keys.
struct ProcessorClass {
  std::string_view name;  ///< without "ImageProcessor"
  bool is_bicubic, crops;
  bool resizes_both_sides;  ///< to a size that is a number
  std::size_t size;
  Channels mean = halves, deviation = halves;
};

constexpr ProcessorClass convnext{"ConvNext", false, false, false, 384};  // of ResNets that name none
constexpr std::array processor_classes{convnext, ProcessorClass{"ViT", false, false, true, 224},
                                       ProcessorClass{"DeiT", true, true, true, 256},
                                       ProcessorClass{"Bit", true, true, false, 224, clip_mean, clip_deviation},
                                       ProcessorClass{"CLIP", true, true, false, 224, clip_mean, clip_deviation}};

std::vector<float> read_channels(const ConfigReader& reader, const char* key, bool positive) {
  const Json* list = reader.find(key);
  if (list == nullptr) return {};
  const auto is_value = [&](const Json& each) {
    return each.is_number() && std::isfinite(each.get<double>()) && (!positive || each.get<double>() > 0.0);
  };
  bool fits = list->is_array() && (list->size() == 1 || list->size() == 3);
  for (const Json& each : *list) fits = fits && is_value(each);
  if (!fits) {
    fail(fmt::format("{}: {} = {} is not a list of one or three numbers{}", reader.file(), key, json_value_text(*list),
                     positive ? " above 0" : ""));
  }
  return list->get<std::vector<float>>();
}

[[noreturn]] void fail_size(const ConfigReader& reader, const char* key, const Json& value) {
  fail(fmt::format("{}: {} = {} is not the size of a square of 1 to {} pixels", reader.file(), key,
                   json_value_text(value), largest_image_side));
}

/// Checks and returns `side`, which is part of `value`.
std::size_t side_of(const ConfigReader& reader, const char* key, const Json& value, const Json& side) {
  if (!side.is_number_unsigned() || side == 0 || side.get<std::size_t>() > largest_image_side)
    fail_size(reader, key, value);
  return side.get<std::size_t>();
}

/// Returns the class of the image processor, by the name of it or of its predecessor, a feature extractor.
const ProcessorClass& class_of(const ConfigReader& reader) {
  for (const char* key : {"image_processor_type", "feature_extractor_type"}) {
    const Json* type = reader.find(key);
    if (type == nullptr) continue;
    const std::string name = type->is_string() ? type->get<std::string>() : "";
    const auto* const found = std::ranges::find(
        processor_classes, name.substr(0, std::min(name.find("Image"), name.find("Feature"))), &ProcessorClass::name);
    if (found != processor_classes.end()) return *found;
    fail(fmt::format("{}: {} = {} is not supported; only those of ConvNext, ViT, DeiT, Bit and CLIP are", reader.file(),
                     key, json_value_text(*type)));
  }
  return convnext;
}

/// True if both sides are given: {"height": n, "width": n}, or a number if the class interprets it so.
bool gives_both_sides(const ConfigReader& reader, const ProcessorClass& of) {
  const Json* size = reader.find("size");
  return size != nullptr && size->is_object() ? size->contains("height") : of.resizes_both_sides;
}

bool read_resample(const ConfigReader& reader, bool usual) {
  const Json* filter = reader.find("resample");
  if (filter == nullptr) return usual;
  if (*filter == bilinear || *filter == bicubic) return *filter == bicubic;
  fail(fmt::format("{}: resample = {} is not supported; only 2 (bilinear) and 3 (bicubic) are", reader.file(),
                   json_value_text(*filter)));
}

/// Returns size / resized, rounded down if necessary so that `resized` can be recovered from it.
double fraction_of(std::size_t size, std::size_t resized) {
  const double fraction = static_cast<double>(size) / static_cast<double>(resized);
  const auto found = static_cast<std::size_t>(static_cast<double>(size) / fraction);
  return found == resized ? fraction : std::nextafter(fraction, 0.0);
}

/// Reads a number, {"shortest_edge": n}, or {"height": n, "width": n}.
std::optional<std::size_t> read_side(const ConfigReader& reader, const char* key) {
  const Json* size = reader.find(key);
  if (size == nullptr) return std::nullopt;
  const Json* side = size;
  if (size->is_object() && size->contains("shortest_edge")) side = &(*size)["shortest_edge"];
  if (size->is_object() && size->contains("height") && size->value("width", Json()) == (*size)["height"]) {
    side = &(*size)["height"];
  }
  return side_of(reader, key, *size, *side);
}

std::optional<double> read_fraction(const ConfigReader& reader) {
  if (reader.find("crop_pct") == nullptr) return std::nullopt;
  double fraction = 1.0;
  reader.read_number("crop_pct", true, 1.0 + 1e-9, fraction);
  return fraction;
}

void check_scale(const ConfigReader& reader) {
  bool rescales = true;
  reader.read_flag("do_rescale", rescales);
  double factor = scale;
  reader.read_number("rescale_factor", true, 1.0, factor);
  if (rescales && std::abs(factor - scale) < 1e-6) return;
  fail(fmt::format("{}: do_rescale = {} with rescale_factor = {} is not supported; only 1/255 is", reader.file(),
                   rescales, factor));
}

void check_channels(const ConfigReader& reader, const ImageProcessor& processor) {
  if (processor.mean.size() == processor.deviation.size()) return;
  fail(fmt::format("{}: a mean of {} channels and a deviation of {}", reader.file(), processor.mean.size(),
                   processor.deviation.size()));
}

/// Reads the mean and deviation of channels.
void read_normalization(const ConfigReader& reader, const ProcessorClass& of, ImageProcessor& processor) {
  bool normalizes = true;
  reader.read_flag("do_normalize", normalizes);
  processor.mean = read_channels(reader, "image_mean", false);
  processor.deviation = read_channels(reader, "image_std", true);
  if (reader.find("image_mean") == nullptr) processor.mean.assign(of.mean.begin(), of.mean.end());
  if (reader.find("image_std") == nullptr) processor.deviation.assign(of.deviation.begin(), of.deviation.end());
  if (!normalizes) {
    processor.mean = {0.0f};
    processor.deviation = {1.0f};
  }
  check_channels(reader, processor);
}

/// Reads the size to which images are resized, and the part of them that is kept.
void read_sizes(const ConfigReader& reader, const ProcessorClass& of, ImageProcessor& processor) {
  bool resizes = true, crops = true;
  reader.read_flag("do_resize", resizes);
  ensure(resizes, fmt::format("{}: do_resize = false is not supported; only true is", reader.file()));
  const std::size_t resized = read_side(reader, "size").value_or(of.size);
  processor.size = resized;
  processor.crop_fraction = 1.0;
  processor.warps = gives_both_sides(reader, of);
  if (of.name == convnext.name && !processor.warps) {
    processor.warps = resized >= least_warped;
    const double fraction = read_fraction(reader).value_or(usual_crop);
    if (!processor.warps) processor.crop_fraction = fraction;
  }
  if (!of.crops) return;
  reader.read_flag("do_center_crop", crops);
  ensure(crops || processor.warps,
         fmt::format("{}: do_center_crop = false without a size of height and width is not supported", reader.file()));
  if (!crops) return;
  processor.size = read_side(reader, "crop_size").value_or(usual_crop_size);
  ensure(*processor.size <= resized,
         fmt::format("{}: crop_size = {} is larger than size = {}, which would pad images and is not supported",
                     reader.file(), *processor.size, resized));
  processor.crop_fraction = fraction_of(*processor.size, resized);
}

ImageProcessor read_transformers_file(const ConfigReader& reader) {
  check_scale(reader);
  const ProcessorClass& of = class_of(reader);
  ImageProcessor processor{.is_bicubic = read_resample(reader, of.is_bicubic)};
  read_normalization(reader, of, processor);
  read_sizes(reader, of, processor);
  return processor;
}

ImageProcessor read_timm_file(const ConfigReader& reader) {
  ImageProcessor processor;
  processor.mean = read_channels(reader, "mean", false);
  processor.deviation = read_channels(reader, "std", true);
  processor.crop_fraction = read_fraction(reader);
  std::string filter = "bicubic";
  if (const Json* named = reader.find("interpolation")) filter = named->is_string() ? named->get<std::string>() : "";
  processor.is_bicubic = filter == "bicubic";
  if (!processor.is_bicubic && filter != "bilinear") {
    fail(fmt::format("{}: interpolation = {} is not supported; only bilinear and bicubic are", reader.file(),
                     json_value_text(reader.json()["interpolation"])));
  }
  const Json* input = reader.find("input_size");  // (channels, height, width)
  if (input != nullptr) {
    if (!input->is_array() || input->size() != 3 || (*input)[1] != (*input)[2]) fail_size(reader, "input_size", *input);
    processor.size = side_of(reader, "input_size", *input, (*input)[1]);
  }
  check_channels(reader, processor);
  return processor;
}

}  // namespace

std::optional<ImageProcessor> read_image_processor(const FileReader& files, const std::filesystem::path& directory) {
  const auto file = directory / image_processor_file, config = directory / "config.json";
  constexpr const char* title = "an image classifier";
  if (is_present(file)) {
    const Json json = read_json(files, file);
    return read_transformers_file({json, file.string(), title});
  }
  if (!is_present(config)) return std::nullopt;
  const Json json = read_json(files, config);
  if (!json.is_object() || !json.contains("pretrained_cfg")) return std::nullopt;
  return read_timm_file({json["pretrained_cfg"], config.string() + ": pretrained_cfg", title});
}

OrderedJson image_processor_json(const ImageProcessor& processor) {
  const double fraction = processor.crop_fraction.value_or(1.0);
  const std::size_t size = processor.size.value_or(0);
  const auto resized = static_cast<std::size_t>(static_cast<double>(size) / fraction);
  const bool crops_alone = processor.warps ? fraction < 1.0 : size >= least_warped;
  const auto square = [](std::size_t side) { return OrderedJson({{"height", side}, {"width", side}}); };
  const char* name = !processor.warps ? crops_alone ? "Bit" : "ConvNext" : crops_alone ? "DeiT" : "ViT";
  OrderedJson json;
  if (crops_alone) json["crop_size"] = square(size);
  if (!crops_alone && !processor.warps) {
    json["crop_pct"] = processor.crop_fraction ? OrderedJson(fraction) : OrderedJson();
  }
  if (crops_alone) json["do_center_crop"] = true;
  json["do_normalize"] = true;
  json["do_rescale"] = true;
  json["do_resize"] = true;
  json["image_mean"] = shortest_decimals(processor.mean);
  json["image_processor_type"] = std::string(name) + "ImageProcessor";
  json["image_std"] = shortest_decimals(processor.deviation);
  json["resample"] = processor.is_bicubic ? bicubic : bilinear;
  json["rescale_factor"] = scale;
  const std::size_t side = crops_alone ? resized : size;
  json["size"] = processor.warps ? square(side) : OrderedJson({{"shortest_edge", side}});
  return json;
}

}  // namespace mylos::data
