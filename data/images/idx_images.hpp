#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "data/images/image_set.hpp"

/// The files of MNIST and its relatives (Fashion-MNIST, KMNIST): images in idx3 and labels in idx1, plain or gzipped.
namespace mylos::data {

struct IdxFiles {
  std::filesystem::path images;
  std::filesystem::path labels;
};

/// Finds train-images-idx3-ubyte and train-labels-idx1-ubyte, or t10k-*, with or without .gz. Returns nullopt if the
/// directory has neither file. Throws if only one file of a pair exists.
std::optional<IdxFiles> find_idx_files(const std::filesystem::path& directory, ImagePart part);

/// Reads both files. Labels are 0 to 9. Throws if a file is truncated or damaged, its sizes are wrong, or a label is
/// larger.
std::unique_ptr<ImageSet> read_idx_images(const FileReader& files, const IdxFiles& found);

}  // namespace mylos::data
