#include "data/images/idx_images.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <string_view>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/files/files.hpp"
#include "data/images/memory_images.hpp"

namespace mylos::data {
namespace {

constexpr std::size_t digits = 10;                  // labels
constexpr std::size_t most_idx_images = 100000000;  // so that products of sizes do not overflow
constexpr std::size_t piece_bytes = std::size_t{1} << 20;

/// Reads a file from its beginning, and decompresses it if it is gzipped. Errors are std::runtime_error with the file.
class InflatedFile {
 public:
  explicit InflatedFile(std::filesystem::path path);
  ~InflatedFile();
  InflatedFile(const InflatedFile&) = delete;
  InflatedFile& operator=(const InflatedFile&) = delete;

  /// Reads exactly `count` bytes. Throws if there are fewer. Memory grows with the bytes present rather than with
  /// `count`, and at most `count` bytes are decompressed.
  std::string read(std::size_t count);
  /// Throws if the file contains more bytes.
  void expect_end();
  const std::filesystem::path& path() const { return path_; }

 private:
  /// Reads up to `count` bytes, fewer only at the end of the file.
  std::size_t read_into(char* target, std::size_t count);

  std::filesystem::path path_;
  gzFile file_;
  std::uint64_t position_ = 0;  ///< in the decompressed bytes
};

InflatedFile::InflatedFile(std::filesystem::path path) : path_(std::move(path)) {
  ensure(!std::filesystem::is_directory(path_), fmt::format("{} is a directory, not a file", path_.string()));
  errno = 0;
  file_ = gzopen(path_.c_str(), "rbe");
  if (file_ == nullptr) fail_with_errno("open", path_, errno == 0 ? ENOMEM : errno);
  gzbuffer(file_, piece_bytes / 8);
}

InflatedFile::~InflatedFile() { gzclose(file_); }

std::size_t InflatedFile::read_into(char* target, std::size_t count) {
  const int read = gzread(file_, target, static_cast<unsigned>(count));
  int code = Z_OK;
  const char* text = gzerror(file_, &code);
  // Z_BUF_ERROR means that the compressed data is truncated, which a short count shows as well.
  if (read < 0 || (code != Z_OK && code != Z_BUF_ERROR)) {
    const std::string_view reason = text;  // the part after the file name
    const std::size_t begin = reason.starts_with(path_.native()) ? path_.native().size() + 2 : 0;
    fail(fmt::format("{} is damaged (zlib: {})", path_.string(), reason.substr(std::min(begin, reason.size()))));
  }
  position_ += static_cast<std::size_t>(read);
  return static_cast<std::size_t>(read);
}

std::string InflatedFile::read(std::size_t count) {
  const std::uint64_t begin = position_;
  std::string bytes;
  while (bytes.size() < count) {
    const std::size_t held = bytes.size(), wanted = std::min(count - held, piece_bytes);
    bytes.resize(held + wanted);
    if (read_into(bytes.data() + held, wanted) == wanted) continue;
    fail(fmt::format("{} ends after {} bytes; its header promises {}", path_.string(), position_, begin + count));
  }
  return bytes;
}

void InflatedFile::expect_end() {
  const std::uint64_t end = position_;
  char more = 0;
  if (read_into(&more, 1) != 0) {
    fail(fmt::format("{} is longer than the {} bytes that its header promises", path_.string(), end));
  }
}

/// Finds `name`-`type`, or `name`.`type` as in some archives, optionally with .gz. nullopt if there is none.
std::optional<std::filesystem::path> find_idx_file(const std::filesystem::path& directory, const std::string& name,
                                                   const char* type) {
  for (const char* separator : {"-", "."}) {
    for (const char* ending : {"", ".gz"}) {
      const auto path = directory / fmt::format("{}{}{}{}", name, separator, type, ending);
      if (std::filesystem::is_regular_file(path)) return path;
    }
  }
  return std::nullopt;
}

std::optional<IdxFiles> find_idx_pair(const std::filesystem::path& directory, const std::string& kind) {
  const auto images = find_idx_file(directory, kind + "-images", "idx3-ubyte");
  const auto labels = find_idx_file(directory, kind + "-labels", "idx1-ubyte");
  if (!images && !labels) return std::nullopt;
  const char* missing = images ? "labels-idx1" : "images-idx3";
  if (!images || !labels) fail(fmt::format("{} has no {}-{}-ubyte[.gz]", directory.string(), kind, missing));
  return IdxFiles{*images, *labels};
}

/// Reads the dimensions from the header of an idx file of bytes.
std::vector<std::size_t> read_idx_header(InflatedFile& file, std::size_t dimensions) {
  const auto number = [&] {
    std::size_t value = 0;
    for (const char byte : file.read(4)) value = value << 8 | static_cast<unsigned char>(byte);
    return value;
  };
  const std::size_t mark = number(), expected = 0x800 + dimensions;
  if (mark != expected) {
    fail(fmt::format("{} begins with {:08x}, an idx file of {} begins with {:08x}", file.path().string(), mark,
                     dimensions == 1 ? "labels" : "images", expected));
  }
  std::vector<std::size_t> sizes(dimensions);
  std::ranges::generate(sizes, number);
  if (sizes[0] > most_idx_images) fail(fmt::format("{} says that it has {} images", file.path().string(), sizes[0]));
  return sizes;
}

MemoryImages::Content read_content(const IdxFiles& files) {
  MemoryImages::Content content{.label_names = numbered_labels(digits)};
  InflatedFile images(files.images), labels(files.labels);
  const auto sizes = read_idx_header(images, 3);
  const auto count = read_idx_header(labels, 1).front();
  if (sizes[0] != count) {
    fail(fmt::format("{} has {} images, {} has {} labels", files.images.string(), sizes[0], files.labels.string(),
                     count));
  }
  ensure(count > 0, fmt::format("{} has no images", files.images.string()));
  try {
    check_image_size(sizes[1], sizes[2]);
  } catch (const std::runtime_error& error) {
    fail(fmt::format("{}: an image {}", files.images.string(), error.what()));
  }
  content.shape = {sizes[1], sizes[2], 1};
  content.files = {{files.images, count}};
  const std::string pixels = images.read(count * content.shape.size());
  content.pixels.assign(pixels.begin(), pixels.end());
  images.expect_end();
  for (const char label : labels.read(count)) content.labels.push_back(static_cast<unsigned char>(label));
  labels.expect_end();
  return content;
}

}  // namespace

std::optional<IdxFiles> find_idx_files(const std::filesystem::path& directory, ImagePart part) {
  std::pair<const char*, const char*> kinds("train", "t10k");
  if (part == ImagePart::test) std::swap(kinds.first, kinds.second);
  const auto wanted = find_idx_pair(directory, kinds.first);
  return wanted ? wanted : find_idx_pair(directory, kinds.second);
}

std::unique_ptr<ImageSet> read_idx_images(const FileReader& files, const IdxFiles& found) {
  MemoryImages::Content content;
  files.read_once(
      found.images, [&] { content = read_content(found); }, content);
  return std::make_unique<MemoryImages>(std::move(content));
}

}  // namespace mylos::data
