#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/images/image.hpp"

/// A data set of labelled pictures. Errors are std::runtime_error of one line that names the file, and the image where
/// a file holds many.
namespace mylos::data {

/// Pictures that are decoded when they are asked for. All functions may be called by several threads at once.
class ImageSet {
 public:
  virtual ~ImageSet() = default;
  ImageSet(const ImageSet&) = delete;
  ImageSet& operator=(const ImageSet&) = delete;

  std::size_t size() const { return labels_.size(); }
  /// An index into label_names().
  std::int32_t label(std::size_t index) const { return labels_.at(index); }
  const std::vector<std::int32_t>& labels() const { return labels_; }
  const std::vector<std::string>& label_names() const { return label_names_; }
  /// The shape that all images have. Empty: they are JPEG or PNG files of any sizes, decoded to three channels.
  const std::optional<ImageShape>& shape() const { return shape_; }

  /// The file's name below the data set's directory; empty where images have no names.
  virtual std::string name(std::size_t index) const = 0;
  /// Where the image lies, for messages: "cats/a.jpg", "test_batch.bin, image 17" with the directory before it.
  virtual std::string location(std::size_t index) const = 0;
  /// The file's bytes as they are, or the pixels where shape() is known.
  virtual std::string encoded(std::size_t index) const = 0;

  /// Decodes the part of an image that `choose` asks for, or all of it. Throws where it is damaged.
  Image decode(std::size_t index, const ChooseRegion& choose = {}) const;

 protected:
  ImageSet() = default;

  std::vector<std::int32_t> labels_;
  std::vector<std::string> label_names_;
  std::optional<ImageShape> shape_;
};

/// Which files of a directory that holds both.
enum class ImagePart {
  training,  ///< data_batch_*, train-*, train
  test,      ///< test_batch*, t10k-*, test
};

struct ImageSetOptions {
  /// Refuse files of class directories whose names do not end in .jpg, .jpeg or .png. `prepare` leaves them out.
  bool check_names = true;
  std::size_t synthetic_labels = 1000;
};

/// Opens a data set: a directory of CIFAR's or MNIST's files, of which one with a single kind serves both parts; a
/// directory of class directories; "synthetic:COUNTxHxW"; or a file of `mylos prepare`.
std::unique_ptr<ImageSet> open_images(const std::string& data, ImagePart part, const ImageSetOptions& options = {});

}  // namespace mylos::data
