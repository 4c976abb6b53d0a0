#pragma once

#include <string>
#include <vector>

#include "data/images/image_set.hpp"

namespace mylos::data {

/// Images of one shape whose pixels lie in memory, from one file or several.
class MemoryImages : public ImageSet {
 public:
  struct File {
    std::filesystem::path path;
    std::size_t images = 0;
  };
  struct Content {
    ImageShape shape = {};
    std::string pixels = {};  ///< of all images, one after the other
    std::vector<std::int32_t> labels = {};
    std::vector<std::string> label_names = {};
    std::vector<File> files = {};  ///< that the images came from, in order
  };

  /// Throws std::invalid_argument where sizes contradict each other, and std::runtime_error naming the file and the
  /// image whose label has no name.
  explicit MemoryImages(Content content);

  std::string name(std::size_t) const override { return {}; }
  std::string location(std::size_t index) const override;
  std::string encoded(std::size_t index) const override;

 private:
  std::string pixels_;
  std::vector<File> files_;
};

/// "0", "1", ...: names of `count` labels that have none.
std::vector<std::string> numbered_labels(std::size_t count);

}  // namespace mylos::data
