#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "data/images/image_set.hpp"

/// The files of CIFAR-10 and CIFAR-100, in the binary or the Python version. CIFAR-100 uses the fine labels.
namespace mylos::data {

struct CifarFiles {
  std::vector<std::filesystem::path> files = {};
  std::optional<std::filesystem::path> names = {};  ///< batches.meta(.txt), meta or fine_label_names.txt
  bool is_pickled = false;
  bool is_fine = false;  ///< CIFAR-100
};

/// Finds the files of one part: data_batch_*.bin or data_batch_* (CIFAR-10), train.bin or train (CIFAR-100); for the
/// test part test_batch.bin, test_batch, test.bin or test. Returns nullopt if the directory has none of them.
std::optional<CifarFiles> find_cifar_files(const FileReader& files, const std::filesystem::path& directory,
                                           ImagePart part);

/// Reads the files into memory. Throws if a file is truncated, is not such a pickle, or has a label out of range.
std::unique_ptr<ImageSet> read_cifar_images(const FileReader& files, const CifarFiles& found);

}  // namespace mylos::data
