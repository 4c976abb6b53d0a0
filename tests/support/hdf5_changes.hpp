#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

/// Changes to a file of ours by HDF5 itself, so that the file stays a valid one. Identifiers are HDF5's hid_t.
namespace mylos::tests {

/// Opens the file, lets `change` have it, and closes it.
void change_hdf5(const std::filesystem::path& path, const std::function<void(std::int64_t file)>& change);

/// Properties of a dataset whose place is taken when it is made and never filled: a hole in the file.
std::int64_t hole_properties();

/// Puts a dataset of `size` elements in place of another, or where none is.
void replace_dataset(std::int64_t file, const std::string& path, std::int64_t type, std::uint64_t size,
                     std::int64_t properties);

}  // namespace mylos::tests
