#pragma once

#include "core/base/files/hdf5.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace mylos {

/// The shape and location of an array in its file.
struct Hdf5Array {
  std::vector<std::size_t> shape;
  std::uint64_t size = 0;    ///< number of elements
  std::uint64_t offset = 0;  ///< first byte in the file; 0 if there are no elements
};

/// An HDF5 file from an untrusted source. Sizes that it declares are checked against the file's size before anything is
/// allocated or read. Errors: std::runtime_error of one line that names the file and the object.
class Hdf5Source {
 public:
  explicit Hdf5Source(const std::filesystem::path& path);

  std::int64_t id() const { return file_.get(); }
  const std::string& name() const { return name_; }
  /// Size of the file in bytes.
  std::uint64_t bytes() const { return bytes_; }

  /// Opens the object at an absolute path; the caller closes it with H5Oclose. Rejects soft and external links, which
  /// Mylos never writes.
  std::int64_t open(const std::string& path) const;

  /// Locates a dataset with elements of `element_bytes`. Rejects datasets that are not stored as one uncompressed block
  /// in this file, such as chunked ones and external files. All located arrays together must fit in the file, so
  /// repeated links to an array cannot multiply the declared size.
  Hdf5Array locate(std::int64_t dataset, std::size_t element_bytes, const std::string& path);

 private:
  std::string name_;
  Hdf5Id file_;
  std::uint64_t bytes_;
  std::uint64_t unclaimed_;  ///< bytes of the file not yet taken by located arrays
};

}  // namespace mylos
