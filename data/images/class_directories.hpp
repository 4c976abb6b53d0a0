#pragma once

#include <filesystem>
#include <memory>

#include "data/images/image_set.hpp"

namespace mylos::data {

/// Opens a directory that has one directory of JPEG and PNG files per class. The class names in byte order are the
/// labels; images are ordered by class and file name. Names that begin with "." are skipped. Files whose names do not
/// end in .jpg, .jpeg or .png (in any case) are passed over. Throws std::runtime_error if there is no class, or if a
/// class has no images or contains a directory.
std::unique_ptr<ImageSet> open_class_directories(const FileReader& files, const std::filesystem::path& directory);

}  // namespace mylos::data
