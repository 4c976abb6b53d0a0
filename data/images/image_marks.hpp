#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace mylos::data {

/// Facts about an image, taken when it is read.
struct ImageMark {
  std::uint32_t checksum = 0;        ///< CRC-32C of its encoded bytes, 1 if that is 0; 0: unknown
  std::uint32_t stamp : 31 = 0;      ///< hash of size and time of its file; 0: unknown
  std::uint32_t is_damaged : 1 = 0;  ///< it cannot be decoded
};

/// Returns the mark of an image whose encoded bytes have this CRC-32C.
ImageMark mark_of(std::uint32_t checksum, std::uint32_t stamp = 0);
/// Reads the file of an image, and returns its mark. Errors: std::runtime_error naming the file.
ImageMark read_marked(const std::filesystem::path& file, std::string& bytes);
/// Returns the stamp of the file of an image; 0 if it cannot be accessed.
std::uint32_t file_stamp(const std::filesystem::path& file);

/// The marks of a data set's images. Several processes may each read some of the images and exchange what they noted.
/// All functions are thread-safe.
class ImageMarks {
 public:
  explicit ImageMarks(std::size_t images) : marks_(images) {}

  ImageMark operator[](std::size_t index) const;
  /// Adds what is known about an image. Returns false if it had another checksum before.
  bool note(std::size_t index, const ImageMark& mark);
  /// Returns the damaged images in ascending order.
  std::vector<std::size_t> damaged() const;

  /// Returns what this process has noted for the first time since the last call.
  std::string take_noted();
  /// Adds what another process has noted. Returns the images that have another checksum here. Errors:
  /// std::invalid_argument if take_noted() did not return `noted`.
  std::vector<std::size_t> add(std::string_view noted);

  /// Returns all marks in the format of a file: a line with their number and CRC-32C, then eight bytes per image.
  std::string text() const;
  /// Replaces all marks by those of `text`. Returns false if it is damaged or has another number of images.
  bool read(std::string_view text);

 private:
  bool merge(std::size_t index, const ImageMark& mark);

  mutable std::mutex mutex_;
  std::vector<ImageMark> marks_;
  std::vector<std::uint32_t> noted_;  ///< images whose marks have changed since take_noted()
};

}  // namespace mylos::data
