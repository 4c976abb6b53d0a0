#pragma once

#include <string>
#include <tuple>
#include <vector>

#include "core/base/shared_array.hpp"
#include "data/images/image_set.hpp"

namespace mylos::data {

/// Images of the same shape whose pixels are in memory, read from one or more files.
class MemoryImages : public ImageSet {
 public:
  struct File {
    std::filesystem::path path;
    std::size_t images = 0;
  };
  struct Content {
    ImageShape shape = {};
    std::vector<char> pixels = {};  ///< all images, one after the other; empty if they are filled in later
    std::vector<std::int32_t> labels = {};
    std::vector<std::string> label_names = {};
    std::vector<File> files = {};  ///< source files, in the order of their images
  };

  /// Throws std::invalid_argument if sizes contradict each other, and std::runtime_error with the file and the image if
  /// a label has no name.
  explicit MemoryImages(Content content);

  std::string name(std::size_t) const override { return {}; }
  std::string location(std::size_t index) const override;
  std::string encoded(std::size_t index) const override;
  std::optional<std::uint32_t> checksum(std::size_t index) const override;
  void write_arrays(ByteWriter& bytes) const override { bytes.add(pixels_); }
  void read_arrays(ByteReader& bytes) override { bytes.read(pixels_); }

 private:
  SharedArray<char> pixels_;
  std::vector<File> files_;
};

inline auto members(MemoryImages::File& file) { return std::tie(file.path, file.images); }
inline auto members(MemoryImages::Content& content) {
  // This does not compile if a member is missing. Processes pass on the pixels apart (ImageSet::write_arrays).
  auto& [shape, pixels, labels, label_names, files] = content;
  return std::tie(shape, labels, label_names, files);
}

/// Returns "0", "1", ... as names for `count` unnamed labels.
std::vector<std::string> numbered_labels(std::size_t count);

}  // namespace mylos::data
