#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

/// Changes to a valid HDF5 file that a fuzzer's bytes choose. HDF5 itself makes them, so that checksums of its metadata
/// are right and readers go on to what the metadata claims.
namespace mylos::tests {

/// Takes values from the front of a fuzzer's bytes; zeros where they end.
class Choices {
 public:
  Choices(const std::uint8_t* bytes, std::size_t size) : bytes_(bytes, size) {}

  bool is_empty() const { return bytes_.empty(); }
  std::uint8_t byte();
  /// A number below `count`, from one byte.
  std::size_t below(std::size_t count) { return byte() % count; }
  /// Little-endian, 4 bytes.
  std::uint32_t word();

 private:
  std::span<const std::uint8_t> bytes_;
};

/// Names that changes apply to: paths of objects, which need not exist, and attributes of any object.
struct ForgeryNames {
  std::vector<std::string> paths;
  std::vector<std::string> attributes;
};

/// Changes the file, once for each group of bytes: the kind of change, then what it needs (hdf5_forgery.cpp). Changes
/// that HDF5 refuses are left out.
void forge_hdf5(const std::filesystem::path& file, const ForgeryNames& names, Choices choices);

}  // namespace mylos::tests
