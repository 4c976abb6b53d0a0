#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "data/images/image_set.hpp"

namespace mylos::data {

/// Opens a list of JPEG and PNG files, all with the label 0. Throws std::runtime_error naming the file if a file does
/// not exist or is a directory.
std::unique_ptr<ImageSet> list_images(std::vector<std::filesystem::path> files);

}  // namespace mylos::data
