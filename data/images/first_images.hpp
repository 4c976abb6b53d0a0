#pragma once

#include <memory>

#include "data/images/image_set.hpp"

namespace mylos::data {

/// Returns the first `count` images of a data set, with all label names of the set. Returns the set itself if it has at
/// most `count` images.
std::unique_ptr<ImageSet> first_images(std::unique_ptr<ImageSet> set, std::size_t count);

}  // namespace mylos::data
