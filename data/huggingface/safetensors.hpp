#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "core/base/files/file_reader.hpp"
#include "core/base/precision.hpp"

/// The safetensors file format: an 8-byte header length, a JSON header, then the tensors' bytes without gaps.
namespace mylos::data {

/// One tensor of a safetensors file. `type` is the format's own name (F32, BF16, I64, ...). The tensor occupies bytes
/// [begin, end), counted from the end of the header.
struct TensorInfo {
  std::string name;
  std::string type;
  std::vector<std::size_t> shape;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};
inline auto members(TensorInfo& tensor) {
  auto& [name, type, shape, begin, end] = tensor;  // does not compile if one is forgotten
  return std::tie(name, type, shape, begin, end);
}

/// Returns the bytes per element of the format's type `name`, or 0 if the format has no such type.
std::size_t safetensors_type_bytes(std::string_view name);

/// Returns the precision of a type that read_float supports, with F64 as float32 because no wider type is ever written.
/// nullopt for other types.
std::optional<Precision> safetensors_precision(std::string_view type);

/// Returns the number of elements. Throws std::runtime_error with `what` if the product overflows.
std::size_t element_count(std::span<const std::size_t> shape, std::string_view what);

/// Returns the start of a message about one tensor of one file.
std::string tensor_subject(std::string_view file, std::string_view tensor);

/// The content of a safetensors header, with tensors in the order of their bytes.
struct SafetensorsHeader {
  std::vector<TensorInfo> tensors;
  std::map<std::string, std::string> metadata;
};
inline auto members(SafetensorsHeader& header) {
  auto& [tensors, metadata] = header;  // does not compile if one is forgotten
  return std::tie(tensors, metadata);
}

/// Parses a JSON header and checks types, shapes, sizes, overlaps, gaps and the end against the `data_bytes` that
/// follow it. Throws std::runtime_error with `file` and the tensor.
SafetensorsHeader parse_safetensors_header(std::string_view json, std::uint64_t data_bytes, const std::string& file);

/// A safetensors file. The constructor checks the whole header; values are read on demand, by one thread at a time.
class SafetensorsFile {
 public:
  /// If `files` has a copy of the header, the file is opened when its first value is read, and must then have the size
  /// and the length of header of the file whose header was copied. Throws std::runtime_error with the file if it cannot
  /// be read, is not a complete safetensors file, or is another one.
  SafetensorsFile(const FileReader& files, std::filesystem::path path);
  ~SafetensorsFile();
  SafetensorsFile(const SafetensorsFile&) = delete;
  SafetensorsFile& operator=(const SafetensorsFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  const std::vector<TensorInfo>& tensors() const { return header_.tensors; }
  const std::map<std::string, std::string>& metadata() const { return header_.metadata; }

  /// Returns the tensor called `name`, or null if the file has none.
  const TensorInfo* find(std::string_view name) const;

  /// Reads an F16, BF16, F32 or F64 tensor as float, in row-major order. Throws std::runtime_error for another type or
  /// an absent name.
  std::vector<float> read_float(std::string_view name) const;
  /// Reads values.size() elements starting at `first`, and no other byte of the tensor. Also throws
  /// std::invalid_argument if the range is outside the tensor.
  void read_float(std::string_view name, std::size_t first, std::span<float> values) const;

  /// Reads an I32 or I64 tensor in row-major order. Throws std::runtime_error for another type or an absent name.
  std::vector<std::int64_t> read_integer(std::string_view name) const;

 private:
  void read_header();
  const TensorInfo& get(std::string_view name) const;
  void read_bytes(const TensorInfo& tensor, std::uint64_t first, std::span<std::byte> bytes) const;
  /// Opens the file if it is not open.
  int descriptor() const;
  void check_copied_header() const;
  void close() const;

  std::filesystem::path path_;
  SafetensorsHeader header_;
  std::uint64_t data_start_ = 0, file_bytes_ = 0;
  mutable int descriptor_ = -1;
};

/// Describes a tensor to be written, without its values.
struct TensorShape {
  std::string name;
  std::vector<std::size_t> shape;
  bool is_count = false;  ///< integers, written as I64 whatever the type of the other tensors
};

/// Writes a safetensors file from a stream of values, so that they need not be in memory at once. The file appears
/// complete or not at all.
class SafetensorsWriter {
 public:
  /// Starts a file with these tensors, in this order, of element type `type`, with the metadata that transformers
  /// requires. Throws std::invalid_argument if a name appears twice, and std::runtime_error with the file.
  SafetensorsWriter(const std::filesystem::path& path, std::span<const TensorShape> tensors,
                    Precision type = Precision::float32);
  /// Appends any number of values. Tensors follow each other in order.
  void write(std::span<const float> values);
  /// Completes the file. Throws std::invalid_argument unless exactly as many values were written as the tensors have.
  void commit();

 private:
  /// A run of consecutive tensors of one type.
  struct Stretch {
    std::size_t end = 0;  ///< elements of the file up to the end of this run
    bool is_count = false;
  };

  StagedFile file_;
  Precision type_;
  std::vector<Stretch> stretches_;
  std::size_t stretch_ = 0;                 ///< the one being written
  std::size_t expected_ = 0, written_ = 0;  ///< elements
};

}  // namespace mylos::data
