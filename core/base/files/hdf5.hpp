#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

/// Common parts of all uses of HDF5: identifiers that close themselves, attributes, and one-line errors that give the
/// file, the failed action and HDF5's reason (std::runtime_error). Identifiers are HDF5's hid_t, declared as
/// std::int64_t so that no header needs HDF5's.
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
  /// Closes the identifier now; returns false if HDF5 fails to.
  bool reset() { return id_ < 0 || close_(std::exchange(id_, -1)) >= 0; }

 private:
  std::int64_t id_;
  Close close_;
};

/// Throws "<file>: cannot <action> <what>: <HDF5's description of its last failure>".
[[noreturn]] void fail_hdf5(const std::string& file, std::string_view action, std::string_view what);

/// Creates the file access properties: metadata with checksums (format 1.10). Also turns off HDF5's printed error
/// stacks and its loading of filter plugins. The caller closes the result with H5Pclose.
std::int64_t hdf5_access_properties();

/// Opens a file for reading; the caller closes it with H5Fclose.
std::int64_t open_hdf5_file(const std::filesystem::path& path);

/// Returns HDF5's in-memory type of Value: std::uint8_t, std::int32_t, std::uint32_t, std::int64_t, std::uint64_t or
/// double.
template <class Value>
std::int64_t hdf5_type();

/// Write an attribute of `object`; `file` names the file in errors. Texts are stored with a fixed length.
void write_hdf5_attribute(std::int64_t object, const char* attribute, std::uint64_t value, const std::string& file);
void write_hdf5_attribute(std::int64_t object, const char* attribute, std::uint32_t value, const std::string& file);
void write_hdf5_attribute(std::int64_t object, const char* attribute, std::int64_t value, const std::string& file);
void write_hdf5_attribute(std::int64_t object, const char* attribute, double value, const std::string& file);
void write_hdf5_attribute(std::int64_t object, const char* attribute, std::string_view value, const std::string& file);

/// Returns whether `object` has an attribute. Errors: the file is damaged.
bool has_hdf5_attribute(std::int64_t object, const char* attribute, const std::string& file);
/// Reads a number; Value is std::int64_t, std::uint64_t, std::uint32_t or double.
template <class Value>
Value read_hdf5_number(std::int64_t object, const char* attribute, const std::string& file);
/// Reads a text of at most `longest` bytes.
std::string read_hdf5_text(std::int64_t object, const char* attribute, const std::string& file, std::size_t longest);

}  // namespace mylos
