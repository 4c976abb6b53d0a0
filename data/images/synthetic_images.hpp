#pragma once

#include <memory>
#include <string>

#include "data/images/image_set.hpp"

/// Pictures of random pixels that no file holds: to measure speed without data.
namespace mylos::data {

/// Whether `data` begins with "synthetic:".
bool is_synthetic(const std::string& data);

/// "synthetic:COUNTxHxW": COUNT pictures of H x W pixels and three channels, labels drawn from `labels`; each is a
/// function of its index. Throws std::runtime_error where the text is malformed or a size is out of range.
std::unique_ptr<ImageSet> make_synthetic_images(const std::string& data, std::size_t labels);

}  // namespace mylos::data
