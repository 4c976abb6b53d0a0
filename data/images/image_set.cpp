#include "data/images/image_set.hpp"

#include <fmt/format.h>

#include <string_view>

#include "core/base/error.hpp"
#include "core/base/files.hpp"
#include "data/images/cifar_images.hpp"
#include "data/images/class_directories.hpp"
#include "data/images/decode.hpp"
#include "data/images/idx_images.hpp"
#include "data/images/image_file.hpp"
#include "data/images/synthetic_images.hpp"

namespace mylos::data {
namespace {

/// Returns whether a file may be one of `mylos prepare`, by its name, or else by its beginning.
bool may_be_prepared(const std::filesystem::path& file) {
  constexpr std::string_view hdf5_mark = "\x89HDF\r\n\x1a\n";
  return file.extension() == ".h5" || file.extension() == ".hdf5" || beginning_of(file, hdf5_mark.size()) == hdf5_mark;
}

}  // namespace

Image ImageSet::decode(std::size_t index, const ChooseRegion& choose) const {
  const std::string bytes = encoded(index);
  if (shape_) {
    Image image{*shape_, {bytes.begin(), bytes.end()}};
    if (!choose) return image;
    return crop(image, chosen_region(choose, shape_->height, shape_->width));
  }
  try {
    return decode_image(bytes, choose);
  } catch (const std::runtime_error& error) {
    fail(fmt::format("{}: {}{}", location(index), error.what(), damage_hint()));
  }
}

std::unique_ptr<ImageSet> open_images(const std::string& data, ImagePart part, const ImageSetOptions& options) {
  if (is_synthetic(data)) return make_synthetic_images(data, options.synthetic_labels);
  const std::filesystem::path path = data;
  if (!std::filesystem::is_directory(path)) {
    ensure(std::filesystem::exists(path), fmt::format("{} is not there", data));
    ensure(may_be_prepared(path),
           fmt::format("{} is not a data set of images; expected a directory of class directories, of CIFAR's files or "
                       "of MNIST's files, a file of `mylos prepare` (.h5), or synthetic:COUNTxHxW",
                       data));
    return open_image_file(path);
  }
  if (const auto files = find_idx_files(path, part)) return read_idx_images(*files);
  if (const auto files = find_cifar_files(path, part)) return read_cifar_images(*files);
  return open_class_directories(path, options.check_names);
}

}  // namespace mylos::data
