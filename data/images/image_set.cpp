#include "data/images/image_set.hpp"

#include <fmt/format.h>

#include "core/base/error.hpp"
#include "core/base/files/hdf5_file.hpp"
#include "core/base/setting_error.hpp"
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
  return file.extension() == ".h5" || file.extension() == ".hdf5" || is_hdf5_file(file);
}

}  // namespace

std::string ImageSet::damage_hint() const {
  return fmt::format("; `mylos prepare` leaves damaged pictures out, and {} goes on without them",
                     setting("damaged", "skip"));
}

/// Reads an image, and decodes the region. `mark` gets the checksum and the stamp of a file that only this image has.
Image ImageSet::decode(std::size_t index, const ChooseRegion& choose, ImageMark& mark) const {
  std::string bytes;
  if (const std::filesystem::path path = marks_ ? file(index) : std::filesystem::path(); !path.empty()) {
    mark = read_marked(path, bytes);
  } else {
    bytes = encoded(index);
  }
  if (shape_) {
    Image image{*shape_, {bytes.begin(), bytes.end()}};
    if (!choose) return image;
    return crop(image, chosen_region(choose, shape_->height, shape_->width));
  }
  try {
    return decode_image(bytes, choose);
  } catch (const std::runtime_error& error) {
    throw DamagedImage(fmt::format("{}: {}{}", location(index), error.what(), damage_hint()));
  }
}

void ImageSet::note(std::size_t index, const ImageMark& mark) const {
  if (!marks_ || marks_->note(index, mark)) return;
  fail(fmt::format("{} has changed since the run first read it; restore it, or start the run over", location(index)));
}

Image ImageSet::decode(std::size_t index, const ChooseRegion& choose) const {
  ImageMark mark;
  try {
    Image image = decode(index, choose, mark);
    note(index, mark);
    return image;
  } catch (const DamagedImage&) {
    // Without skipping, the run ends before it has used the image, which may be repaired.
    mark.is_damaged = 1;
    if (skips_damaged_) note(index, mark);
    throw;
  }
}

std::unique_ptr<ImageSet> open_images(const FileReader& files, const std::string& data, ImagePart part,
                                      const ImageSetOptions& options) {
  if (is_synthetic(data)) return make_synthetic_images(data, options.synthetic_labels);
  const std::filesystem::path path = data;
  if (!std::filesystem::is_directory(path)) {
    ensure(std::filesystem::exists(path), fmt::format("{} is not there", data));
    ensure(may_be_prepared(path),
           fmt::format("{} is not a data set of images; expected a directory of class directories, of CIFAR's files or "
                       "of MNIST's files, a file of `mylos prepare` (.h5), or synthetic:COUNTxHxW",
                       data));
    return open_image_file(files, path);
  }
  if (const auto idx = find_idx_files(path, part)) return read_idx_images(files, *idx);
  if (const auto cifar = find_cifar_files(files, path, part)) return read_cifar_images(files, *cifar);
  return open_class_directories(files, path);
}

}  // namespace mylos::data
