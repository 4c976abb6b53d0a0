#include "data/images/listed_images.hpp"

#include <fmt/format.h>

#include <utility>

#include "core/base/error.hpp"
#include "core/base/files/files.hpp"

namespace mylos::data {
namespace {

class ListedImages final : public ImageSet {
 public:
  explicit ListedImages(std::vector<std::filesystem::path> files) : files_(std::move(files)) {
    for (const std::filesystem::path& file : files_) {
      ensure(std::filesystem::exists(file), fmt::format("{} is not there", file.string()));
      ensure(!std::filesystem::is_directory(file), fmt::format("{} is a directory, not an image", file.string()));
    }
    labels_.assign(files_.size(), 0);
    label_names_ = {"0"};
  }

  std::string name(std::size_t index) const override { return files_.at(index).string(); }
  std::string location(std::size_t index) const override { return name(index); }
  std::string encoded(std::size_t index) const override { return read_text(files_.at(index)); }

 protected:
  std::string damage_hint() const override { return {}; }

 private:
  std::vector<std::filesystem::path> files_;
};

}  // namespace

std::unique_ptr<ImageSet> list_images(std::vector<std::filesystem::path> files) {
  return std::make_unique<ListedImages>(std::move(files));
}

}  // namespace mylos::data
