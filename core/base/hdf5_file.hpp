#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/hdf5.hpp"
#include "core/base/hdf5_source.hpp"

/// One-dimensional arrays with checksums in an HDF5 file, and numbers and texts as attributes of its root.
/// Elements are std::uint8_t, std::int32_t, std::uint32_t or std::uint64_t. Errors are std::runtime_error of one line:
/// the file, the array or attribute, and what HDF5 says.
namespace mylos {

/// A new file, made in memory for the caller to store: where the disk is full under HDF5 1.10 it crashes at exit.
class Hdf5Writer {
 public:
  /// `name` stands for the file in errors.
  explicit Hdf5Writer(std::string name);

  void set_attribute(const char* attribute, std::int64_t value);
  void set_attribute(const char* attribute, std::string_view value);
  /// Writes the array "/group/.../array", making its groups.
  template <class Element>
  void write(const char* array, std::span<const Element> values);
  /// Closes it and gives its bytes; nothing can be written after.
  std::string finish();

 private:
  std::string name_;
  std::string bytes_;
  Hdf5Id file_;
};

/// A file that is there, read-only; see Hdf5Source for what it refuses.
class Hdf5Reader {
 public:
  explicit Hdf5Reader(const std::filesystem::path& path);

  bool has_attribute(const char* attribute) const;
  std::int64_t integer(const char* attribute) const;
  std::string text(const char* attribute) const;
  /// The array's values, after its checksum was found right. All arrays that were read must fit in the file together.
  template <class Element>
  std::vector<Element> read(const char* array);

 private:
  Hdf5Source file_;
};

}  // namespace mylos
