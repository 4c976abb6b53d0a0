#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "data/images/image_set.hpp"

/// CIFAR-10's and CIFAR-100's files, in the binary version or Python's. CIFAR-100's labels are the fine ones.
namespace mylos::data {

struct CifarFiles {
  std::vector<std::filesystem::path> files = {};
  std::optional<std::filesystem::path> names = {};  ///< batches.meta(.txt), meta, fine_label_names.txt
  bool is_pickled = false;
  bool is_fine = false;  ///< CIFAR-100
};

/// Finds data_batch_*.bin or data_batch_* (CIFAR-10), train.bin or the file train (CIFAR-100), or of the other part
/// test_batch.bin, test_batch, test.bin or test. Empty where the directory has none of them.
std::optional<CifarFiles> find_cifar_files(const std::filesystem::path& directory, ImagePart part);

/// Reads them whole. Throws where a file is cut short, is no such pickle, or a label is out of range.
std::unique_ptr<ImageSet> read_cifar_images(const CifarFiles& files);

}  // namespace mylos::data
