#include "tests/support/hdf5_changes.hpp"

#include "core/base/files/hdf5.hpp"

#include <gtest/gtest.h>
#include <hdf5.h>

namespace mylos::tests {

void change_hdf5(const std::filesystem::path& path, const std::function<void(std::int64_t file)>& change) {
  const Hdf5Id access(hdf5_access_properties(), H5Pclose);
  Hdf5Id file(H5Fopen(path.c_str(), H5F_ACC_RDWR, access.get()), H5Fclose);
  ASSERT_TRUE(file.is_valid());
  change(file.get());
  ASSERT_TRUE(file.reset());
}

std::int64_t hole_properties() {
  const hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_alloc_time(properties, H5D_ALLOC_TIME_EARLY);
  H5Pset_fill_time(properties, H5D_FILL_TIME_NEVER);
  return properties;
}

void replace_dataset(std::int64_t file, const std::string& path, std::int64_t type, std::uint64_t size,
                     std::int64_t properties) {
  const hsize_t extent = size;
  if (H5Lexists(file, path.c_str(), H5P_DEFAULT) > 0) H5Ldelete(file, path.c_str(), H5P_DEFAULT);
  const Hdf5Id space(H5Screate_simple(1, &extent, nullptr), H5Sclose);
  const Hdf5Id dataset(H5Dcreate2(file, path.c_str(), type, space.get(), H5P_DEFAULT, properties, H5P_DEFAULT),
                       H5Dclose);
  ASSERT_TRUE(dataset.is_valid()) << path;
}

}  // namespace mylos::tests
