#include "families/interface/image_format.hpp"

namespace mylos::families {

std::string_view to_string(ImageStem stem) { return stem == ImageStem::cifar ? "cifar" : "imagenet"; }

}  // namespace mylos::families
