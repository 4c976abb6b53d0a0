#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/files/hdf5.hpp"
#include "core/base/files/hdf5_source.hpp"

/// One-dimensional arrays with checksums in an HDF5 file, with numbers and texts as attributes of its root. Elements
/// are std::uint8_t, std::int32_t, std::uint32_t or std::uint64_t. Errors are std::runtime_error of one line with the
/// file, the array or attribute, and HDF5's reason.
namespace mylos {

/// True if the file begins as HDF5 does. False for JSON and for unreadable files.
bool is_hdf5_file(const std::filesystem::path& path);
/// True if `mylos prepare` wrote the file in this format, complete or damaged.
bool is_prepared_file(const std::filesystem::path& path, std::string_view format);
/// Returns the command that makes a prepared file.
std::string prepare_command(std::string_view output = "FILE.h5");
/// Returns the advice to make the file again.
std::string prepare_again(std::string_view path);

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

  /// Checks the format of a prepared file, in its attributes "format" and "format_version", which is `version` or one
  /// since `oldest`. The error names the command that makes the file again.
  void check_format(std::string_view format, std::int64_t version, std::optional<std::int64_t> oldest = {}) const;
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
