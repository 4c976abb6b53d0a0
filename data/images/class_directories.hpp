#pragma once

#include <filesystem>
#include <memory>

#include "data/images/image_set.hpp"

namespace mylos::data {

/// A directory of class directories of JPEG and PNG files: the classes' names in the order of their bytes are the
/// labels, and images have the order of class and file name. Names that begin with "." are passed over. Throws
/// std::runtime_error where there is no class, a class has no file or a directory in it, or, with `check_names`, a
/// file's name does not end in .jpg, .jpeg or .png, in small or large letters.
std::unique_ptr<ImageSet> open_class_directories(const std::filesystem::path& directory, bool check_names);

}  // namespace mylos::data
