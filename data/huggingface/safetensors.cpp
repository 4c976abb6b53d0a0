#include "data/huggingface/safetensors.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/files/files.hpp"
#include "core/base/text/printable.hpp"
#include "core/base/text/quantities.hpp"
#include "core/base/uninterrupted.hpp"
#include "core/numeric.hpp"

namespace mylos::data {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian, and read as they are");

constexpr std::size_t length_bytes = 8;
constexpr std::uint64_t longest_header = 100'000'000;            // bytes; the limit of the format's reference library
constexpr std::uint64_t lfs_pointer_start = 0x206e6f6973726576;  // "version ": start of the file in a clone without
                                                                 // git-lfs
constexpr std::size_t chunk_bytes = std::size_t{1} << 20;

/// Reads bytes.size() bytes at `offset` of an open file.
void read_at(int descriptor, std::uint64_t offset, std::span<std::byte> bytes, const std::string& file) {
  while (!bytes.empty()) {
    const auto count =
        uninterrupted([&] { return ::pread(descriptor, bytes.data(), bytes.size(), static_cast<off_t>(offset)); });
    if (count < 0) fail(fmt::format("cannot read {}: {}", file, std::strerror(errno)));
    if (count == 0) fail(fmt::format("{}: cut short at byte {} while it was read; fetch it again", file, offset));
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
}

/// Converts packed `Source` elements, which may be unaligned.
template <class Source, class Target>
void convert(std::span<const std::byte> bytes, Target* target) {
  for (std::size_t i = 0; i * sizeof(Source) < bytes.size(); ++i) {
    Source element;
    std::memcpy(&element, bytes.data() + i * sizeof(Source), sizeof(Source));
    target[i] = static_cast<Target>(element);
  }
}

template <class Target>
using Converter = void (*)(std::span<const std::byte>, Target*);

Converter<float> float_converter(std::string_view type) {
  if (type == "F32") return convert<float, float>;
  if (type == "F16") return convert<half, float>;
  if (type == "BF16") return convert<bfloat16, float>;
  if (type == "F64") return convert<double, float>;
  return nullptr;
}

Converter<std::int64_t> integer_converter(std::string_view type) {
  if (type == "I32") return convert<std::int32_t, std::int64_t>;
  if (type == "I64") return convert<std::int64_t, std::int64_t>;
  return nullptr;
}

std::uint64_t file_size(int descriptor, const std::string& file) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) fail(fmt::format("cannot read {}: {}", file, std::strerror(errno)));
  ensure(S_ISREG(status.st_mode), fmt::format("{} is not a file", file));
  return static_cast<std::uint64_t>(status.st_size);
}

}  // namespace

std::optional<Precision> safetensors_precision(std::string_view type) {
  if (type == "F16") return Precision::float16;
  if (type == "BF16") return Precision::bfloat16;
  if (type == "F32" || type == "F64") return Precision::float32;
  return std::nullopt;
}

SafetensorsFile::SafetensorsFile(const FileReader& files, std::filesystem::path path) : path_(std::move(path)) {
  try {
    files.read_once(
        path_, [this] { read_header(); }, header_, data_start_, file_bytes_);
  } catch (...) {
    close();
    throw;
  }
}

SafetensorsFile::~SafetensorsFile() { close(); }

int SafetensorsFile::descriptor() const {
  if (descriptor_ >= 0) return descriptor_;
  // Opening a pipe does not wait for its writer, so that it can be refused.
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) fail(fmt::format("cannot read {}: {}", path_.string(), std::strerror(errno)));
  try {
    if (file_bytes_ > 0) check_copied_header();
  } catch (...) {
    close();
    throw;
  }
  return descriptor_;
}

/// Another version of the file has its values elsewhere, and they would be read as those of other tensors.
void SafetensorsFile::check_copied_header() const {
  const std::uint64_t bytes = file_size(descriptor_, path_.string());
  ensure(bytes == file_bytes_,
         fmt::format("{} has {} bytes here, but {} where its header was read: all ranks need the same file",
                     path_.string(), bytes, file_bytes_));
  std::uint64_t header_bytes = 0;
  read_at(descriptor_, 0, std::as_writable_bytes(std::span(&header_bytes, 1)), path_.string());
  ensure(length_bytes + header_bytes == data_start_,
         fmt::format("{} has a header of {} bytes here, but one of {} where it was read: all ranks need the same file",
                     path_.string(), header_bytes, data_start_ - length_bytes));
}

void SafetensorsFile::close() const {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

void SafetensorsFile::read_header() {
  const auto file = path_.string();
  const std::uint64_t size = file_size(descriptor(), file);
  ensure(size >= length_bytes,
         fmt::format("{}: {} bytes are too few for a safetensors file; fetch it again", file, size));
  std::uint64_t header_bytes = 0;
  read_at(descriptor(), 0, std::as_writable_bytes(std::span(&header_bytes, 1)), file);
  ensure(header_bytes != lfs_pointer_start,
         fmt::format("{}: a git-lfs pointer, not the weights; run `git lfs pull` in its directory", file));
  ensure(header_bytes <= std::min(longest_header, size - length_bytes),
         fmt::format("{}: its header claims {} bytes, but {} follow: not a safetensors file, or cut short", file,
                     header_bytes, size - length_bytes));
  std::string json(header_bytes, '\0');
  read_at(descriptor(), length_bytes, std::as_writable_bytes(std::span(json)), file);
  data_start_ = length_bytes + header_bytes;
  file_bytes_ = size;
  header_ = parse_safetensors_header(json, size - data_start_, file);
}

const TensorInfo* SafetensorsFile::find(std::string_view name) const {
  const auto found = std::ranges::find(header_.tensors, name, &TensorInfo::name);
  return found == header_.tensors.end() ? nullptr : &*found;
}

const TensorInfo& SafetensorsFile::get(std::string_view name) const {
  const auto* tensor = find(name);
  if (tensor == nullptr) fail(fmt::format("{} has no tensor \"{}\"", path_.string(), printable(name)));
  return *tensor;
}

void SafetensorsFile::read_bytes(const TensorInfo& tensor, std::uint64_t first, std::span<std::byte> bytes) const {
  read_at(descriptor(), data_start_ + tensor.begin + first, bytes, path_.string());
}

void SafetensorsFile::read_float(std::string_view name, std::size_t first, std::span<float> values) const {
  const auto& tensor = get(name);
  const auto what = tensor_subject(path_.string(), name);
  const auto to_float = float_converter(tensor.type);
  if (to_float == nullptr) fail(fmt::format("{} has type {}, not F16, BF16, F32 or F64", what, tensor.type));
  const std::size_t size = element_count(tensor.shape, what);
  require(first <= size && values.size() <= size - first,
          fmt::format("{} of shape {} has no values {} to {}", what, shape_text(tensor.shape), first,
                      first + values.size()));
  const auto width = safetensors_type_bytes(tensor.type);
  if (tensor.type == "F32") return read_bytes(tensor, first * width, std::as_writable_bytes(values));
  std::vector<std::byte> chunk(std::min(chunk_bytes, values.size() * width));
  for (std::size_t done = 0; done < values.size(); done += chunk_bytes / width) {
    const auto count = std::min(chunk_bytes / width, values.size() - done);
    const auto bytes = std::span(chunk).first(count * width);
    read_bytes(tensor, (first + done) * width, bytes);
    to_float(bytes, values.data() + done);
  }
}

std::vector<float> SafetensorsFile::read_float(std::string_view name) const {
  std::vector<float> values(element_count(get(name).shape, name));
  read_float(name, 0, values);
  return values;
}

std::vector<std::int64_t> SafetensorsFile::read_integer(std::string_view name) const {
  const auto& tensor = get(name);
  const auto to_integer = integer_converter(tensor.type);
  if (to_integer == nullptr) {
    fail(fmt::format("{} has type {}, not I32 or I64", tensor_subject(path_.string(), name), tensor.type));
  }
  std::vector<std::byte> bytes(tensor.end - tensor.begin);
  read_bytes(tensor, 0, bytes);
  std::vector<std::int64_t> values(element_count(tensor.shape, name));
  to_integer(bytes, values.data());
  return values;
}

}  // namespace mylos::data
