#include "families/resnet/resnet_shapes.hpp"

#include <algorithm>
#include <array>

namespace mylos::families {
namespace {

constexpr std::size_t imagenet_labels = 1000;

ResnetConfig shape_of(std::vector<std::size_t> depths, bool bottleneck) {
  ResnetConfig config;
  config.depths = std::move(depths);
  config.bottleneck = bottleneck;
  if (!bottleneck) config.hidden_sizes = {64, 128, 256, 512};
  config.labels = unnamed_labels(imagenet_labels);
  return config;
}

}  // namespace

std::span<const NamedResnet> resnet_shapes() {
  static const std::array shapes = {NamedResnet{"resnet18", shape_of({2, 2, 2, 2}, false), "microsoft/resnet-18"},
                                    NamedResnet{"resnet34", shape_of({3, 4, 6, 3}, false), "microsoft/resnet-34"},
                                    NamedResnet{"resnet50", shape_of({3, 4, 6, 3}, true), "microsoft/resnet-50"},
                                    NamedResnet{"resnet101", shape_of({3, 4, 23, 3}, true), "microsoft/resnet-101"},
                                    NamedResnet{"resnet152", shape_of({3, 8, 36, 3}, true), "microsoft/resnet-152"}};
  return shapes;
}

const NamedResnet* find_resnet_shape(std::string_view name) {
  const auto found = std::ranges::find(resnet_shapes(), name, &NamedResnet::name);
  return found == resnet_shapes().end() ? nullptr : &*found;
}

const NamedResnet* find_resnet_sizes(std::string_view name) {
  const auto found = std::ranges::find_if(
      resnet_shapes(), [&](const NamedResnet& known) { return known.name == name || known.fetched == name; });
  return found == resnet_shapes().end() ? nullptr : &*found;
}

}  // namespace mylos::families
