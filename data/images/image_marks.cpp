#include "data/images/image_marks.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>

#include "core/base/crc32c.hpp"
#include "core/base/error.hpp"
#include "core/base/files/files.hpp"
#include "core/base/files/positioned_file.hpp"

namespace mylos::data {
namespace {

/// A mark as it is sent to another process.
struct SentMark {
  std::uint32_t index = 0;
  ImageMark mark;
};

/// Returns a hash of a file's size and the time of its last change, from 1 to 2^31 - 1.
std::uint32_t stamp_of(const struct stat& status) {
  const std::int64_t parts[] = {status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec};
  return std::max(crc32c(std::as_bytes(std::span(parts))) >> 1, 1u);
}

std::string_view raw_bytes(std::span<const ImageMark> marks) {
  return {reinterpret_cast<const char*>(marks.data()), marks.size_bytes()};
}

std::string header_of(std::span<const ImageMark> marks) {
  return fmt::format("mylos image marks 1: {} images, {:08x}\n", marks.size(), crc32c(std::as_bytes(marks)));
}

}  // namespace

ImageMark mark_of(std::uint32_t checksum, std::uint32_t stamp) {
  ImageMark mark{.checksum = std::max(checksum, 1u)};
  mark.stamp = stamp & 0x7fffffffu;
  return mark;
}

ImageMark read_marked(const std::filesystem::path& file, std::string& bytes) {
  const PositionedFile source(file, PositionedFile::Use::read);
  struct stat status {};
  if (::fstat(source.descriptor(), &status) != 0) fail_with_errno("read", file, errno);
  bytes.resize(static_cast<std::size_t>(status.st_size));
  source.read(0, std::as_writable_bytes(std::span(bytes)));
  return mark_of(crc32c(std::as_bytes(std::span(bytes))), stamp_of(status));
}

std::uint32_t file_stamp(const std::filesystem::path& file) {
  struct stat status {};
  return ::stat(file.c_str(), &status) == 0 ? stamp_of(status) : 0;
}

ImageMark ImageMarks::operator[](std::size_t index) const {
  const std::lock_guard lock(mutex_);
  return marks_.at(index);
}

/// Adds what `mark` knows in addition. Returns false if the checksums differ.
bool ImageMarks::merge(std::size_t index, const ImageMark& mark) {
  ImageMark& own = marks_.at(index);
  if (own.checksum != 0 && mark.checksum != 0 && own.checksum != mark.checksum) return false;
  if (mark.checksum != 0) own.checksum = mark.checksum;
  if (mark.stamp != 0) own.stamp = mark.stamp;
  if (mark.is_damaged != 0) own.is_damaged = 1;
  return true;
}

bool ImageMarks::note(std::size_t index, const ImageMark& mark) {
  const std::lock_guard lock(mutex_);
  const ImageMark before = marks_.at(index);
  if (!merge(index, mark)) return false;
  const ImageMark& after = marks_[index];
  const bool is_news = after.checksum != before.checksum || after.is_damaged != before.is_damaged;
  if (is_news) noted_.push_back(static_cast<std::uint32_t>(index));
  return true;
}

std::vector<std::size_t> ImageMarks::damaged() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::size_t> damaged;
  for (std::size_t i = 0; i < marks_.size(); ++i) {
    if (marks_[i].is_damaged != 0) damaged.push_back(i);
  }
  return damaged;
}

std::string ImageMarks::take_noted() {
  const std::lock_guard lock(mutex_);
  std::string bytes;
  for (const std::uint32_t index : noted_) {
    const SentMark sent{index, marks_[index]};
    bytes.append(reinterpret_cast<const char*>(&sent), sizeof sent);
  }
  noted_.clear();
  return bytes;
}

std::vector<std::size_t> ImageMarks::add(std::string_view noted) {
  const std::lock_guard lock(mutex_);
  require(noted.size() % sizeof(SentMark) == 0, "image marks: a part of a mark");
  std::vector<std::size_t> differing;
  for (; !noted.empty(); noted.remove_prefix(sizeof(SentMark))) {
    SentMark sent;
    std::memcpy(&sent, noted.data(), sizeof sent);
    if (!merge(sent.index, sent.mark)) differing.push_back(sent.index);
  }
  return differing;
}

std::string ImageMarks::text() const {
  const std::lock_guard lock(mutex_);
  return header_of(marks_) + std::string(raw_bytes(marks_));
}

bool ImageMarks::read(std::string_view text) {
  const std::lock_guard lock(mutex_);
  std::vector<ImageMark> marks(marks_.size());
  const std::size_t bytes = marks.size() * sizeof(ImageMark);
  if (text.size() < bytes) return false;
  std::memcpy(marks.data(), text.data() + text.size() - bytes, bytes);
  if (text.substr(0, text.size() - bytes) != header_of(marks)) return false;
  marks_ = std::move(marks);
  return true;
}

}  // namespace mylos::data
