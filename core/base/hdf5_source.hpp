#pragma once

#include "core/base/hdf5.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace mylos {

/// Where an array lies in its file.
struct Hdf5Array {
  std::vector<std::size_t> shape;
  std::uint64_t size = 0;    ///< elements
  std::uint64_t offset = 0;  ///< of the first byte in the file; 0 where there are no elements
};

/// An HDF5 file that somebody else may have written. What it claims is compared with its size before anything is
/// allocated for it or read. Errors: std::runtime_error of one line that names the file and the object.
class Hdf5Source {
 public:
  explicit Hdf5Source(const std::filesystem::path& path);

  std::int64_t id() const { return file_.get(); }
  const std::string& name() const { return name_; }
  /// The file's size.
  std::uint64_t bytes() const { return bytes_; }

  /// Opens the object at an absolute path; the caller closes it with H5Oclose. Refuses links to paths and to other
  /// files, which Mylos never writes.
  std::int64_t open(const std::string& path) const;

  /// Locates a dataset whose elements have `element_bytes`. Refuses what does not lie in this file in one piece as it
  /// is: chunks, which may be compressed, and external files. All located arrays together must fit in the file, so a
  /// second link to an array does not multiply what it claims.
  Hdf5Array locate(std::int64_t dataset, std::size_t element_bytes, const std::string& path);

 private:
  std::string name_;
  Hdf5Id file_;
  std::uint64_t bytes_;
  std::uint64_t unclaimed_;  ///< bytes that no located array has taken
};

}  // namespace mylos
