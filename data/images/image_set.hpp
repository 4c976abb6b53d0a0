#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/base/files/file_reader.hpp"
#include "core/base/value_bytes.hpp"
#include "data/images/image.hpp"
#include "data/images/image_marks.hpp"

/// A data set of labelled images. Errors are std::runtime_error of one line with the file, and with the image if a file
/// holds several.
namespace mylos::data {

/// An image whose bytes cannot be decoded, or do not have the checksum that its file records.
class DamagedImage : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

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
  /// Returns the file that contains the image and nothing else; empty if there is none.
  virtual std::filesystem::path file(std::size_t) const { return {}; }
  /// Returns the CRC-32C of encoded() if it is known without reading a file.
  virtual std::optional<std::uint32_t> checksum(std::size_t) const { return {}; }
  /// Write and read the large arrays of a set: its pixels in memory, or its index. A set that was made from a copy of
  /// what another process has read (FileReader) has none, and must read them before an image is used.
  virtual void write_arrays(ByteWriter&) const {}
  virtual void read_arrays(ByteReader&) {}

  /// Decodes the region of an image that `choose` selects, by default all of it. Throws DamagedImage if the image is
  /// damaged; with marks, std::runtime_error if its file has changed.
  Image decode(std::size_t index, const ChooseRegion& choose = {}) const;

  /// Makes decode() mark the images that it reads; with `skips_damaged`, also those that are damaged.
  void keep_marks(bool skips_damaged) {
    marks_ = std::make_unique<ImageMarks>(size());
    skips_damaged_ = skips_damaged;
  }
  /// Returns null without keep_marks().
  ImageMarks* marks() const { return marks_.get(); }

  /// Files of class directories that are no images by their names, which torchvision passes over, too.
  struct PassedOver {
    std::size_t files = 0;
    std::string first = {};  ///< path of the first one
  };
  const PassedOver& passed_over() const { return passed_over_; }

 protected:
  ImageSet() = default;
  /// Returns what ends the message about a damaged image: "; " and what helps, or nothing.
  virtual std::string damage_hint() const;

  std::vector<std::int32_t> labels_;
  std::vector<std::string> label_names_;
  std::optional<ImageShape> shape_;
  PassedOver passed_over_;

 private:
  Image decode(std::size_t index, const ChooseRegion& choose, ImageMark& mark) const;
  void note(std::size_t index, const ImageMark& mark) const;

  std::unique_ptr<ImageMarks> marks_;
  bool skips_damaged_ = false;
};

/// Selects the files of a directory that contains both parts.
enum class ImagePart {
  training,  ///< data_batch_*, train-*, train
  test,      ///< test_batch*, t10k-*, test
};

struct ImageSetOptions {
  std::size_t synthetic_labels = 1000;
};

/// Opens a data set: a directory of CIFAR or MNIST files (used for both parts if it contains only one of them), a
/// directory of class directories, "synthetic:COUNTxHxW", or a file written by `mylos prepare`.
std::unique_ptr<ImageSet> open_images(const FileReader& files, const std::string& data, ImagePart part,
                                      const ImageSetOptions& options = {});

/// Opens a list of JPEG and PNG files, all with the label 0. Throws std::runtime_error naming the file if a file does
/// not exist or is a directory.
std::unique_ptr<ImageSet> list_images(std::vector<std::filesystem::path> files);

/// Returns the first `count` images of a data set, with all label names of the set. Returns the set itself if it has at
/// most `count` images.
std::unique_ptr<ImageSet> first_images(std::unique_ptr<ImageSet> set, std::size_t count);

}  // namespace mylos::data
