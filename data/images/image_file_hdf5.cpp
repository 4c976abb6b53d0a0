// Layout of an image file: /bytes, all images one after the other; /starts, the offset of each; /checksums; /labels;
// /label_names and /names, each name followed by a zero byte; and attributes of the root group.
#include <fmt/format.h>
#include <hdf5.h>

#include <algorithm>
#include <span>

#include "core/base/crc32c.hpp"
#include "core/base/error.hpp"
#include "core/base/files/files.hpp"
#include "core/base/files/hdf5_file.hpp"
#include "core/base/files/positioned_file.hpp"
#include "data/images/image_file.hpp"

namespace mylos::data {
namespace {

std::vector<std::string> split_names(const std::vector<std::uint8_t>& bytes) {
  std::vector<std::string> names;
  std::string name;
  for (const std::uint8_t byte : bytes) {
    if (byte != 0) {
      name += static_cast<char>(byte);
    } else {
      names.push_back(std::move(name));
      name.clear();
    }
  }
  return names;
}

class PreparedImages : public ImageSet {
 public:
  PreparedImages(const FileReader& files, const std::filesystem::path& path) : file_(path, PositionedFile::Use::read) {
    files.read_once(
        path, [&] { read_index(path); }, shape_, labels_, label_names_, offset_, file_bytes_);
    if (file_.size() != file_bytes_) {
      fail(fmt::format("{} has {} bytes here, but {} where its index was read: all ranks need the same file",
                       path.string(), file_.size(), file_bytes_));
    }
  }

  std::string name(std::size_t index) const override {
    if (name_starts_.empty()) return {};
    require(index < name_starts_.size(), "an image of the file");
    return reinterpret_cast<const char*>(names_.data() + name_starts_[index]);
  }

  std::string location(std::size_t index) const override {
    const std::string file = fmt::format("{}, image {}", file_.path().string(), index);
    return name_starts_.empty() ? file : fmt::format("{} ({})", file, name(index));
  }

  std::string encoded(std::size_t index) const override {
    require(index < checksums_.size(), "an image of the file, whose index is there");
    std::string bytes(starts_[index + 1] - starts_[index], '\0');
    file_.read(offset_ + starts_[index], std::as_writable_bytes(std::span(bytes)));
    const auto found = crc32c(std::as_bytes(std::span(bytes)));
    if (found != checksums_[index]) {
      throw DamagedImage(fmt::format("{} has CRC32C {:08x}, not {:08x}: the file is damaged; {}", location(index),
                                     found, checksums_[index], prepare_again(file_.path().string())));
    }
    return bytes;
  }

  std::optional<std::uint32_t> checksum(std::size_t index) const override { return checksums_[index]; }

  void write_arrays(ByteWriter& bytes) const override {
    bytes.add(starts_);
    bytes.add(checksums_);
    bytes.add(names_);
    bytes.add(name_starts_);
  }
  void read_arrays(ByteReader& bytes) override {
    bytes.read(starts_);
    bytes.read(checksums_);
    bytes.read(names_);
    bytes.read(name_starts_);
  }

 private:
  void check(bool condition, std::string_view problem) const {
    if (!condition) fail(fmt::format("{}: {}", file_.path().string(), problem));
  }

  /// Reads and checks everything except the images.
  void read_index(const std::filesystem::path& path) {
    Hdf5Reader reader(path);
    reader.check_format(image_file_format, image_file_version);
    read_shape(reader);
    labels_ = reader.read<std::int32_t>("/labels");
    starts_ = reader.read<std::uint64_t>("/starts");
    checksums_ = reader.read<std::uint32_t>("/checksums");
    label_names_ = split_names(reader.read<std::uint8_t>("/label_names"));
    names_ = reader.read<std::uint8_t>("/names");
    locate_names();
    locate_bytes(path);
    check_prepared_arrays();
    file_bytes_ = file_.size();
  }

  void read_shape(const Hdf5Reader& reader) {
    if (!reader.has_attribute("height")) return;
    const auto height = reader.integer("height"), width = reader.integer("width"),
               channels = reader.integer("channels");
    check(height > 0 && width > 0 && (channels == 1 || channels == 3) &&
              static_cast<std::size_t>(height) <= most_pixels / static_cast<std::size_t>(width),
          fmt::format("images have a shape of {} x {} x {}", height, width, channels));
    shape_ = {static_cast<std::size_t>(height), static_cast<std::size_t>(width), static_cast<std::size_t>(channels)};
  }

  void locate_names() {
    std::uint64_t begin = 0;
    for (std::uint64_t i = 0; i < names_.size(); ++i) {
      if (names_[i] != 0) continue;
      name_starts_.values().push_back(begin);
      begin = i + 1;
    }
  }

  void locate_bytes(const std::filesystem::path& path) {
    Hdf5Source source(path);
    const Hdf5Id dataset(source.open("/bytes"), H5Oclose);
    const Hdf5Array array = source.locate(dataset.get(), 1, "/bytes");
    offset_ = array.offset;
    bytes_ = array.size;
  }

  void check_prepared_arrays() const {
    check(!labels_.empty(), "it contains no images");
    const bool divides =
        !starts_.empty() && starts_.front() == 0 && std::ranges::is_sorted(starts_) && starts_.back() == bytes_;
    if (!divides) fail(fmt::format("{}: /starts does not divide {} bytes", file_.path().string(), bytes_));
    check(starts_.size() == size() + 1 && checksums_.size() == size() &&
              (name_starts_.empty() || name_starts_.size() == size()),
          "the arrays of the images differ in length");
    for (std::size_t i = 0; i < size(); ++i) {
      const bool is_named = labels_[i] >= 0 && static_cast<std::size_t>(labels_[i]) < label_names_.size();
      if (!is_named) fail(fmt::format("{}: label {} of {} labels", location(i), labels_[i], label_names_.size()));
      const std::uint64_t bytes = starts_[i + 1] - starts_[i];
      if (shape_ && bytes != shape_->size()) {
        fail(fmt::format("{} has {} bytes for {} pixels and channels", location(i), bytes, shape_->size()));
      }
    }
  }

  PositionedFile file_;
  std::uint64_t file_bytes_ = 0;
  std::uint64_t offset_ = 0;  ///< position of /bytes in the file
  std::uint64_t bytes_ = 0;
  SharedArray<std::uint64_t> starts_;
  SharedArray<std::uint32_t> checksums_;
  SharedArray<std::uint8_t> names_;         ///< each followed by a zero byte
  SharedArray<std::uint64_t> name_starts_;  ///< begin of each image's name; empty if images have no names
};

}  // namespace

std::unique_ptr<ImageSet> open_image_file(const FileReader& files, const std::filesystem::path& path) {
  return std::make_unique<PreparedImages>(files, path);
}

bool is_image_file(const std::filesystem::path& path) { return is_prepared_file(path, image_file_format); }

}  // namespace mylos::data
