#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/files.hpp"
#include "core/numeric.hpp"

/// The safetensors file format: an 8-byte header length, a JSON header, then the tensors' bytes without gaps.
namespace mylos::data {

/// One tensor of a safetensors file. `type` is the format's own name (F32, BF16, I64, ...); its bytes are
/// [begin, end) counted from the end of the header.
struct TensorInfo {
  std::string name;
  std::string type;
  std::vector<std::size_t> shape;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// Bytes of an element of the type the format calls `name`; 0 where it has no such type.
std::size_t safetensors_type_bytes(std::string_view name);

/// The type of a tensor that read_float reads: F64 is wider than any we write and counts as float32; empty for one that
/// it refuses.
std::optional<Precision> safetensors_precision(std::string_view type);

/// Number of elements. Throws std::runtime_error naming `what` where the product overflows.
std::size_t element_count(std::span<const std::size_t> shape, std::string_view what);

/// The start of a message about one tensor of one file.
std::string tensor_subject(std::string_view file, std::string_view tensor);

/// "(2, 384)": a shape as messages print it.
std::string shape_text(std::span<const std::size_t> shape);

/// What the header of a safetensors file says, in the order of the tensors' bytes.
struct SafetensorsHeader {
  std::vector<TensorInfo> tensors;
  std::map<std::string, std::string> metadata;
};

/// Reads and checks a JSON header against the `data_bytes` that follow it: types, shapes, sizes, overlaps, gaps, end.
/// Throws std::runtime_error naming `file` and the tensor.
SafetensorsHeader parse_safetensors_header(std::string_view json, std::uint64_t data_bytes, const std::string& file);

/// An open safetensors file. The header is checked in full when it is opened; values are read on demand.
class SafetensorsFile {
 public:
  /// Throws std::runtime_error naming the file where it cannot be read or is not a whole safetensors file.
  explicit SafetensorsFile(std::filesystem::path path);
  ~SafetensorsFile();
  SafetensorsFile(const SafetensorsFile&) = delete;
  SafetensorsFile& operator=(const SafetensorsFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  const std::vector<TensorInfo>& tensors() const { return header_.tensors; }
  const std::map<std::string, std::string>& metadata() const { return header_.metadata; }

  /// The tensor called `name`, or null where the file has none.
  const TensorInfo* find(std::string_view name) const;

  /// Values of an F16, BF16, F32 or F64 tensor as float, row-major. Throws std::runtime_error for another type or an
  /// absent name.
  std::vector<float> read_float(std::string_view name) const;
  /// Those from element `first` on; no other byte of the tensor is read. Throws also std::invalid_argument where they
  /// do not lie in the tensor.
  void read_float(std::string_view name, std::size_t first, std::span<float> values) const;

  /// Values of an I32 or I64 tensor, row-major. Throws std::runtime_error for another type or an absent name.
  std::vector<std::int64_t> read_integer(std::string_view name) const;

 private:
  void read_header();
  const TensorInfo& get(std::string_view name) const;
  void read_bytes(const TensorInfo& tensor, std::uint64_t first, std::span<std::byte> bytes) const;

  std::filesystem::path path_;
  SafetensorsHeader header_;
  std::uint64_t data_start_ = 0;
  int descriptor_ = -1;
};

/// What a tensor to write is, its values apart.
struct TensorShape {
  std::string name;
  std::vector<std::size_t> shape;
  bool is_count = false;  ///< whole numbers, written as I64 whatever the type of the others
};

/// Writes a safetensors file whose values come piece by piece, so that they never stand in memory together. The file
/// appears whole or not at all.
class SafetensorsWriter {
 public:
  /// Begins a file of these tensors, in this order, of element type `type`, with the metadata that transformers asks
  /// for. Errors: std::invalid_argument where a name comes twice; std::runtime_error naming the file.
  SafetensorsWriter(const std::filesystem::path& path, std::span<const TensorShape> tensors,
                    Precision type = Precision::float32);
  /// The next values, any number of them: those of a tensor follow those of the one before it.
  void write(std::span<const float> values);
  /// Errors: std::invalid_argument where there were more or fewer values than the tensors have.
  void commit();

 private:
  /// Neighbouring tensors of one type.
  struct Stretch {
    std::size_t end = 0;  ///< elements of the file up to its end
    bool is_count = false;
  };

  StagedFile file_;
  Precision type_;
  std::vector<Stretch> stretches_;
  std::size_t stretch_ = 0;                 ///< that is being written
  std::size_t expected_ = 0, written_ = 0;  ///< elements
};

/// A tensor to write: row-major float values, product(shape) of them.
struct NamedTensor {
  std::string name;
  std::vector<std::size_t> shape;
  std::span<const float> values;
};

/// Names and shapes. Errors: std::invalid_argument where values do not fit a shape.
std::vector<TensorShape> shapes_of(std::span<const NamedTensor> tensors);

/// Writes `tensors` in the order given, as `type`, with the metadata that transformers asks for. The file appears
/// whole or not at all: where the disk is full, std::runtime_error names the file and an older one stays.
void write_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                       Precision type = Precision::float32);

}  // namespace mylos::data
