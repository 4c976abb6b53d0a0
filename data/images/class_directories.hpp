#pragma once

#include <filesystem>
#include <memory>

#include "data/images/image_set.hpp"

namespace mylos::data {

/// Opens a directory that has one directory of JPEG and PNG files per class. The class names in byte order are the
/// labels; images are ordered by class and file name. Names that begin with "." are skipped. Throws std::runtime_error
/// if there is no class, if a class has no files or contains a directory, or, with `check_names`, if a file's name does
/// not end in .jpg, .jpeg or .png (in any case).
std::unique_ptr<ImageSet> open_class_directories(const std::filesystem::path& directory, bool check_names);

}  // namespace mylos::data
