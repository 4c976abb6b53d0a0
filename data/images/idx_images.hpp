#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "data/images/image_set.hpp"

/// MNIST's files, and those of its kin (Fashion-MNIST, KMNIST): images in idx3, labels in idx1, plain or gzip's.
namespace mylos::data {

struct IdxFiles {
  std::filesystem::path images;
  std::filesystem::path labels;
};

/// Finds train-images-idx3-ubyte and train-labels-idx1-ubyte, or t10k-*, with or without .gz; empty where the directory
/// has neither kind. Throws where only one of a pair is there.
std::optional<IdxFiles> find_idx_files(const std::filesystem::path& directory, ImagePart part);

/// Reads both files. Labels are 0 to 9. Throws where a file is cut short or damaged, its sizes lie, or a label is
/// larger.
std::unique_ptr<ImageSet> read_idx_images(const IdxFiles& files);

}  // namespace mylos::data
