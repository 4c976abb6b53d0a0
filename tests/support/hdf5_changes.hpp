#pragma once

#include "core/hdf5.hpp"

#include <gtest/gtest.h>
#include <hdf5.h>

#include <filesystem>
#include <functional>
#include <string>

/// Changes to a file of ours by HDF5 itself, so that the file stays a valid one.
namespace mylos::tests {

/// Opens the file, lets `change` have it, and closes it.
inline void change_hdf5(const std::filesystem::path& path, const std::function<void(hid_t file)>& change) {
  const Hdf5Id access(hdf5_access_properties(), H5Pclose);
  Hdf5Id file(H5Fopen(path.c_str(), H5F_ACC_RDWR, access.get()), H5Fclose);
  ASSERT_TRUE(file.is_valid());
  change(file.get());
  ASSERT_TRUE(file.reset());
}

/// Properties of a dataset whose place is taken when it is made and never filled: a hole in the file.
inline hid_t hole_properties() {
  const hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_alloc_time(properties, H5D_ALLOC_TIME_EARLY);
  H5Pset_fill_time(properties, H5D_FILL_TIME_NEVER);
  return properties;
}

/// Puts a dataset of `size` elements in place of another, or where none is.
inline void replace_dataset(hid_t file, const std::string& path, hid_t type, hsize_t size, hid_t properties) {
  if (H5Lexists(file, path.c_str(), H5P_DEFAULT) > 0) H5Ldelete(file, path.c_str(), H5P_DEFAULT);
  const Hdf5Id space(H5Screate_simple(1, &size, nullptr), H5Sclose);
  const Hdf5Id dataset(H5Dcreate2(file, path.c_str(), type, space.get(), H5P_DEFAULT, properties, H5P_DEFAULT),
                       H5Dclose);
  ASSERT_TRUE(dataset.is_valid()) << path;
}

}  // namespace mylos::tests
