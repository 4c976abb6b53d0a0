#include "families/interface/image_format.hpp"

#include <fmt/format.h>

namespace mylos::families {

std::vector<std::string> unnamed_labels(std::size_t count) {
  std::vector<std::string> labels;
  for (std::size_t i = 0; i < count; ++i) labels.push_back(fmt::format("LABEL_{}", i));
  return labels;
}

std::string_view to_string(ImageStem stem) { return stem == ImageStem::cifar ? "cifar" : "imagenet"; }

}  // namespace mylos::families
