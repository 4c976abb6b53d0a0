#pragma once

#include "tests/support/temporary.hpp"

#include <cstddef>
#include <filesystem>
#include <string>

/// Small data sets in files, for tests.
namespace mylos::tests {

/// Encodes a number as in idx files: four bytes, most significant first.
inline std::string idx_number(std::size_t value) {
  std::string bytes;
  for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(value >> shift & 0xff);
  return bytes;
}

/// Returns a grey image of side x side pixels. Image i has the label i % 10; that column of every ten is bright and the
/// others are dark, with small differences between images.
inline std::string small_digit(std::size_t index, std::size_t side) {
  std::string pixels;
  for (std::size_t i = 0; i < side * side; ++i) {
    const bool bright = i % side % 10 == index % 10;
    pixels += static_cast<char>((bright ? 200 : 10) + (7 * index + i) % 40);
  }
  return pixels;
}

/// Writes MNIST files with `training` and `test` such images. Leaves out the files of a part without images.
inline void write_small_digits(const std::filesystem::path& directory, std::size_t training, std::size_t test,
                               std::size_t side = 12) {
  for (const auto& [name, count] : {std::pair("train", training), std::pair("t10k", test)}) {
    if (count == 0) continue;
    std::string images = idx_number(0x803) + idx_number(count) + idx_number(side) + idx_number(side);
    std::string labels = idx_number(0x801) + idx_number(count);
    for (std::size_t i = 0; i < count; ++i) {
      images += small_digit(i, side);
      labels += static_cast<char>(i % 10);
    }
    write_file(directory / (std::string(name) + "-images-idx3-ubyte"), images);
    write_file(directory / (std::string(name) + "-labels-idx1-ubyte"), labels);
  }
}

}  // namespace mylos::tests
