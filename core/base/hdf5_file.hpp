#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/hdf5.hpp"
#include "core/base/hdf5_source.hpp"

/// One-dimensional arrays with checksums in an HDF5 file, with numbers and texts as attributes of its root. Elements
/// are std::uint8_t, std::int32_t, std::uint32_t or std::uint64_t. Errors are std::runtime_error of one line with the
/// file, the array or attribute, and HDF5's reason.
namespace mylos {

/// A new file, built in memory for the caller to store: HDF5 1.10 crashes at exit if it writes to a full disk itself.
class Hdf5Writer {
 public:
  /// `name` stands for the file in errors.
  explicit Hdf5Writer(std::string name);

  void set_attribute(const char* attribute, std::int64_t value);
  void set_attribute(const char* attribute, std::string_view value);
  /// Writes the array "/group/.../array", creating its groups.
  template <class Element>
  void write(const char* array, std::span<const Element> values);
  /// Closes the file and returns its bytes; nothing can be written afterwards.
  std::string finish();

 private:
  std::string name_;
  std::string bytes_;
  Hdf5Id file_;
};

/// An existing file, opened read-only. Hdf5Source documents the files that it rejects.
class Hdf5Reader {
 public:
  explicit Hdf5Reader(const std::filesystem::path& path);

  bool has_attribute(const char* attribute) const;
  std::int64_t integer(const char* attribute) const;
  std::string text(const char* attribute) const;
  /// Reads an array and verifies its checksum. All arrays read must fit in the file together.
  template <class Element>
  std::vector<Element> read(const char* array);

 private:
  Hdf5Source file_;
};

}  // namespace mylos
