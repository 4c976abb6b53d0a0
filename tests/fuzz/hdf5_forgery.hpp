#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

/// Changes a valid HDF5 file as directed by a fuzzer's bytes. HDF5 itself makes the changes, so that the checksums of
/// its metadata are correct and readers process what the metadata claims.
namespace mylos::tests {

/// Takes values from the front of a fuzzer's bytes, and zeros after their end.
class Choices {
 public:
  Choices(const std::uint8_t* bytes, std::size_t size) : bytes_(bytes, size) {}

  bool is_empty() const { return bytes_.empty(); }
  std::uint8_t byte();
  /// Returns a number below `count`, from one byte.
  std::size_t below(std::size_t count) { return byte() % count; }
  /// Returns a little-endian number of 4 bytes.
  std::uint32_t word();

 private:
  std::span<const std::uint8_t> bytes_;
};

/// Names to which changes apply: paths of objects, which need not exist, and attributes of any object.
struct ForgeryNames {
  std::vector<std::string> paths;
  std::vector<std::string> attributes;
};

/// Changes the file once per group of bytes, which selects the kind of change and its arguments (hdf5_forgery.cpp).
/// Changes that HDF5 rejects are skipped.
void forge_hdf5(const std::filesystem::path& file, const ForgeryNames& names, Choices choices);

}  // namespace mylos::tests
