#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "data/images/image_set.hpp"

namespace mylos::data {

/// JPEG and PNG files that are named one by one, all with the label 0. Throws std::runtime_error naming a file that is
/// not there or is a directory.
std::unique_ptr<ImageSet> list_images(std::vector<std::filesystem::path> files);

}  // namespace mylos::data
