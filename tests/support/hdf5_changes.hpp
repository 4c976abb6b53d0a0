#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

/// Changes a file through HDF5 itself, so that it stays valid. Identifiers are HDF5's hid_t.
namespace mylos::tests {

/// Opens the file, calls `change` with it, and closes it.
void change_hdf5(const std::filesystem::path& path, const std::function<void(std::int64_t file)>& change);

/// Returns the properties of a dataset that is allocated at creation and never written: a hole in the file.
std::int64_t hole_properties();

/// Creates a dataset of `size` elements, replacing any existing one.
void replace_dataset(std::int64_t file, const std::string& path, std::int64_t type, std::uint64_t size,
                     std::int64_t properties);

}  // namespace mylos::tests
