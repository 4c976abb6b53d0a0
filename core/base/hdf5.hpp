#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

/// What every use of HDF5 shares: identifiers that close, attributes, and errors of one line: the file, what could not
/// be done, and what HDF5 says (std::runtime_error). Identifiers are HDF5's hid_t, so that no header needs HDF5's.
namespace mylos {

/// An HDF5 identifier, closed with the object.
class Hdf5Id {
 public:
  using Close = int (*)(std::int64_t);
  Hdf5Id(std::int64_t id, Close close) : id_(id), close_(close) {}
  ~Hdf5Id() { reset(); }
  Hdf5Id(const Hdf5Id&) = delete;
  Hdf5Id& operator=(const Hdf5Id&) = delete;

  std::int64_t get() const { return id_; }
  bool is_valid() const { return id_ >= 0; }
  /// Closes it now; false where HDF5 could not.
  bool reset() { return id_ < 0 || close_(std::exchange(id_, -1)) >= 0; }

 private:
  std::int64_t id_;
  Close close_;
};

/// Throws "<file>: cannot <action> <what>: <what HDF5 says of its last failure>".
[[noreturn]] void fail_hdf5(const std::string& file, std::string_view action, std::string_view what);

/// Properties of file access: checksummed metadata (format 1.10), and no refusal where file locks are not to be had.
/// From here on HDF5 prints no stacks of errors and loads no filter plugins. The caller closes it with H5Pclose.
std::int64_t hdf5_access_properties();

/// Opens a file to be read; the caller closes it with H5Fclose.
std::int64_t open_hdf5_file(const std::filesystem::path& path);

/// HDF5's type of a Value in memory: std::uint8_t, std::int32_t, std::uint32_t, std::int64_t, std::uint64_t or double.
template <class Value>
std::int64_t hdf5_type();

/// Attributes of `object`; `file` stands for the file in errors. Texts have a fixed length.
void write_hdf5_attribute(std::int64_t object, const char* attribute, std::uint64_t value, const std::string& file);
void write_hdf5_attribute(std::int64_t object, const char* attribute, std::uint32_t value, const std::string& file);
void write_hdf5_attribute(std::int64_t object, const char* attribute, std::int64_t value, const std::string& file);
void write_hdf5_attribute(std::int64_t object, const char* attribute, double value, const std::string& file);
void write_hdf5_attribute(std::int64_t object, const char* attribute, std::string_view value, const std::string& file);

/// Value is std::int64_t, std::uint64_t, std::uint32_t or double.
template <class Value>
Value read_hdf5_number(std::int64_t object, const char* attribute, const std::string& file);
/// A text of at most `longest` bytes.
std::string read_hdf5_text(std::int64_t object, const char* attribute, const std::string& file, std::size_t longest);

}  // namespace mylos
