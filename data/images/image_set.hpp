#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/value_bytes.hpp"
#include "data/images/image.hpp"

/// A data set of labelled images. Errors are std::runtime_error of one line with the file, and with the image if a file
/// holds several.
namespace mylos::data {

/// Images that are decoded on demand. All functions are thread-safe.
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
  /// Returns the common shape of all images. nullopt if they are JPEG or PNG files of any size, decoded to three
  /// channels.
  const std::optional<ImageShape>& shape() const { return shape_; }

  /// Returns the file name relative to the data set's directory. Empty if images have no names.
  virtual std::string name(std::size_t index) const = 0;
  /// Returns the image's location for messages: "cats/a.jpg", or "test_batch.bin, image 17", after the directory.
  virtual std::string location(std::size_t index) const = 0;
  /// Returns the unchanged bytes of the file, or the pixels if shape() has a value.
  virtual std::string encoded(std::size_t index) const = 0;
  /// Write and read the large arrays of a set: its pixels in memory, or its index. A set that was made from a copy of
  /// what another process has read (read_once) has none, and must read them before an image is used.
  virtual void write_arrays(ByteWriter&) const {}
  virtual void read_arrays(ByteReader&) {}

  /// Decodes the region of an image that `choose` selects, by default all of it. Throws if the image is damaged.
  Image decode(std::size_t index, const ChooseRegion& choose = {}) const;

 protected:
  ImageSet() = default;
  /// Returns what ends the message about a damaged image: "; " and what helps, or nothing.
  virtual std::string damage_hint() const { return "; `mylos prepare` leaves damaged pictures out"; }

  std::vector<std::int32_t> labels_;
  std::vector<std::string> label_names_;
  std::optional<ImageShape> shape_;
};

/// Selects the files of a directory that contains both parts.
enum class ImagePart {
  training,  ///< data_batch_*, train-*, train
  test,      ///< test_batch*, t10k-*, test
};

struct ImageSetOptions {
  /// Rejects files in class directories whose names do not end in .jpg, .jpeg or .png. `prepare` leaves them out
  /// instead.
  bool check_names = true;
  std::size_t synthetic_labels = 1000;
};

/// Opens a data set: a directory of CIFAR or MNIST files (used for both parts if it contains only one of them), a
/// directory of class directories, "synthetic:COUNTxHxW", or a file written by `mylos prepare`.
std::unique_ptr<ImageSet> open_images(const std::string& data, ImagePart part, const ImageSetOptions& options = {});

}  // namespace mylos::data
