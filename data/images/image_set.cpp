#include "data/images/image_set.hpp"

#include <fmt/format.h>

#include "core/base/error.hpp"
#include "core/base/files/files.hpp"
#include "core/base/files/hdf5_file.hpp"
#include "core/base/setting_error.hpp"
#include "data/images/cifar_images.hpp"
#include "data/images/decode.hpp"
#include "data/images/idx_images.hpp"
#include "data/images/image_file.hpp"
#include "data/images/synthetic_images.hpp"

#include <algorithm>
#include <utility>

namespace mylos::data {
namespace {

/// Returns whether a file may be one of `mylos prepare`, by its name, or else by its beginning.
bool may_be_prepared(const std::filesystem::path& file) {
  return file.extension() == ".h5" || file.extension() == ".hdf5" || is_hdf5_file(file);
}

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

namespace fs = std::filesystem;

/// Returns the entries of a directory, sorted by name, without hidden ones. Throws with its path if it cannot be read.
std::vector<DirectoryEntry> entries_of(const FileReader& files, const fs::path& directory) {
  std::vector<DirectoryEntry> entries = files.list_directory(directory);
  std::erase_if(entries, [](const DirectoryEntry& entry) { return entry.name.starts_with('.'); });
  return entries;
}

bool is_named_as_image(const fs::path& file) {
  std::string ending = file.extension().string();
  std::ranges::transform(ending, ending.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; });
  return ending == ".jpg" || ending == ".jpeg" || ending == ".png";
}

/// A directory that has one directory of JPEG and PNG files per class. The class names in byte order are the
/// labels; images are ordered by class and file name. Names that begin with "." are skipped. Files whose names do not
/// end in .jpg, .jpeg or .png (in any case) are passed over. Throws std::runtime_error if there is no class, or if a
/// class has no images or contains a directory.
class ClassDirectories final : public ImageSet {
 public:
  ClassDirectories(const FileReader& files, fs::path directory) : directory_(std::move(directory)) {
    for (const DirectoryEntry& entry : entries_of(files, directory_)) {
      if (entry.kind == EntryKind::directory) add_class(files, directory_ / entry.name);
    }
    if (label_names_.empty()) {
      fail(fmt::format("{} has no class directories, and no files of CIFAR or MNIST by their official names",
                       directory_.string()));
    }
  }

  std::string name(std::size_t index) const override {
    return label_names_[static_cast<std::size_t>(label(index))] + '/' + files_[index];
  }
  std::string location(std::size_t index) const override { return (directory_ / name(index)).string(); }
  std::string encoded(std::size_t index) const override { return read_text(file(index)); }
  fs::path file(std::size_t index) const override { return directory_ / name(index); }

 private:
  void add_class(const FileReader& files, const fs::path& path) {
    const std::size_t before = files_.size();
    for (const DirectoryEntry& entry : entries_of(files, path)) {
      const fs::path file = path / entry.name;
      if (entry.kind == EntryKind::directory) {
        fail(
            fmt::format("{} is a directory inside a class directory; name the directory whose directories are the "
                        "classes",
                        file.string()));
      }
      if (!is_named_as_image(file)) {
        if (passed_over_.files++ == 0) passed_over_.first = file.string();
        continue;
      }
      if (entry.kind == EntryKind::other) fail(fmt::format("{} is not a file", file.string()));
      files_.push_back(entry.name);
    }
    ensure(files_.size() > before,
           fmt::format("{}: a class directory without files named .jpg, .jpeg or .png", path.string()));
    labels_.resize(files_.size(), static_cast<std::int32_t>(label_names_.size()));
    label_names_.push_back(path.filename().string());
  }

  fs::path directory_;
  std::vector<std::string> files_;
};

class FirstImages final : public ImageSet {
 public:
  FirstImages(std::unique_ptr<ImageSet> set, std::size_t count) : set_(std::move(set)) {
    labels_.assign(set_->labels().begin(), set_->labels().begin() + static_cast<std::ptrdiff_t>(count));
    label_names_ = set_->label_names();
    shape_ = set_->shape();
    passed_over_ = set_->passed_over();
  }

  std::string name(std::size_t index) const override { return set_->name(index); }
  std::string location(std::size_t index) const override { return set_->location(index); }
  std::string encoded(std::size_t index) const override { return set_->encoded(index); }
  std::filesystem::path file(std::size_t index) const override { return set_->file(index); }
  std::optional<std::uint32_t> checksum(std::size_t index) const override { return set_->checksum(index); }
  void write_arrays(ByteWriter& bytes) const override { set_->write_arrays(bytes); }
  void read_arrays(ByteReader& bytes) override { set_->read_arrays(bytes); }

 private:
  std::unique_ptr<ImageSet> set_;
};

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
  return std::make_unique<ClassDirectories>(files, path);
}

std::unique_ptr<ImageSet> list_images(std::vector<std::filesystem::path> files) {
  return std::make_unique<ListedImages>(std::move(files));
}

std::unique_ptr<ImageSet> first_images(std::unique_ptr<ImageSet> set, std::size_t count) {
  require(count > 0, "first_images: none is asked for");
  if (count >= set->size()) return set;
  return std::make_unique<FirstImages>(std::move(set), count);
}

}  // namespace mylos::data
