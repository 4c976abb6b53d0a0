#include "families/resnet/resnet_tensors.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "data/huggingface/label_names.hpp"

namespace mylos::families {
namespace {

/// Removes `prefix` from the front of `text`. Returns false if `text` does not begin with it.
bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

/// Removes a number of at most four digits from the front of `text`: the index of a stage or layer.
std::optional<std::size_t> take_number(std::string_view& text) {
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const auto digits = static_cast<std::size_t>(end - text.data());
  if (error != std::errc() || digits == 0 || digits > 4) return std::nullopt;
  text.remove_prefix(digits);
  return number;
}

/// Returns our name of a tensor in a block, given torchvision's name after "layer1.0.". Empty if unknown.
std::string name_in_block(std::string_view part) {
  if (take(part, "downsample.0.")) return fmt::format("shortcut.convolution.{}", part);
  if (take(part, "downsample.1.")) return fmt::format("shortcut.normalization.{}", part);
  for (const auto& [prefix, kind] : {std::pair{"conv", "convolution"}, std::pair{"bn", "normalization"}}) {
    if (!take(part, prefix)) continue;
    const auto number = take_number(part);
    if (!number || *number == 0 || !take(part, ".")) return {};
    return fmt::format("layer.{}.{}.{}", *number - 1, kind, part);
  }
  return {};
}

/// Converts torchvision's "layer1.0.conv1.weight". Returns an empty string for other names.
std::string name_of_block(std::string_view name) {
  if (!take(name, "layer")) return {};
  const auto stage = take_number(name);
  if (!stage || *stage == 0 || !take(name, ".")) return {};
  const auto block = take_number(name);
  if (!block || !take(name, ".")) return {};
  const std::string part = name_in_block(name);
  return part.empty() ? "" : fmt::format("resnet.encoder.stages.{}.layers.{}.{}", *stage - 1, *block, part);
}

}  // namespace

std::string canonical_resnet_name(std::string_view name) {
  take(name, "module.");
  struct Renamed {
    std::string_view from, to;
  };
  constexpr std::array renamed = {Renamed{"conv1.", "resnet.embedder.embedder.convolution."},
                                  Renamed{"bn1.", "resnet.embedder.embedder.normalization."},
                                  Renamed{"fc.", "classifier.1."}, Renamed{"embedder.", "resnet.embedder."},
                                  Renamed{"encoder.", "resnet.encoder."}};
  for (const auto& [from, to] : renamed) {
    if (take(name, from)) return fmt::format("{}{}", to, name);
  }
  const std::string block = name_of_block(name);
  return block.empty() ? std::string(name) : block;
}

bool is_resnet_classifier(std::string_view name) { return name.starts_with("classifier."); }

bool is_batch_count(std::string_view name) { return name.ends_with(".num_batches_tracked"); }

void take_weights_shape(const FileReader& files, const std::filesystem::path& directory, ResnetConfig& config) {
  const data::WeightFiles weights(files, directory, canonical_resnet_name);
  const auto shape_of = [&](const char* name) {
    const auto found = weights.entries().find(name);
    return found == weights.entries().end() ? std::vector<std::size_t>() : found->second.tensor->shape;
  };
  const auto last = shape_of("classifier.1.weight"), first = shape_of("resnet.embedder.embedder.convolution.weight");
  if (!last.empty()) config.labels = data::unnamed_labels(last.front());
  if (first.size() == 4) config.shape.stem = first.back() == 3 ? ImageStem::cifar : ImageStem::imagenet;
}

data::TensorNaming resnet_tensor_naming(bool with_classifier) {
  return {.model = "a ResNet",
          .canonical = canonical_resnet_name,
          .is_ignored = with_classifier ? nullptr : is_resnet_classifier};
}

}  // namespace mylos::families
