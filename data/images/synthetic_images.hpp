#pragma once

#include <memory>
#include <string>

#include "data/images/image_set.hpp"

/// Images of random pixels without a file, to measure speed without data.
namespace mylos::data {

/// True if `data` begins with "synthetic:".
bool is_synthetic(const std::string& data);

/// Creates the data set "synthetic:COUNTxHxW": COUNT images of H x W pixels with three channels and random labels below
/// `labels`. Each image is a function of its index. Throws std::runtime_error if the text is malformed or a size is out
/// of range.
std::unique_ptr<ImageSet> make_synthetic_images(const std::string& data, std::size_t labels);

}  // namespace mylos::data
