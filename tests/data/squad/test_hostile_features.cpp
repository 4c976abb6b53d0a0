// Valid HDF5 files that Mylos did not write, with invalid contents.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hdf5.h>

#include <functional>
#include <numeric>

#include "core/base/files/hdf5.hpp"
#include "core/base/files/hdf5_file.hpp"
#include "core/base/value_bytes.hpp"
#include "data/squad/feature_file.hpp"
#include "tests/data/squad/prepared.hpp"
#include "tests/support/changed_bytes.hpp"
#include "tests/support/hdf5_changes.hpp"
#include "tests/support/memory_limit.hpp"
#include "tests/support/sanitized.hpp"
#include "tests/support/temporary.hpp"

#include <fcntl.h>
#include <unistd.h>

namespace mylos::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using tests::error_of;
using tests::replace_dataset;
using tests::TemporaryDirectory;

class HostileFeatures : public ::testing::Test {
 protected:
  void SetUp() override { write_feature_file(path_, small_prepared()); }

  /// Returns the error of reading the file after `change`.
  std::string message(const std::function<void(hid_t file)>& change) {
    tests::change_hdf5(path_, change);
    return tests::error_of_file(path_, [&] { read_feature_file(path_); });
  }

  TemporaryDirectory directory_;
  std::filesystem::path path_ = directory_ / "features.h5";
};

/// True if the file system of this path reports holes.
bool reports_holes(const std::filesystem::path& path) {
  tests::write_file(path, "x");
  std::filesystem::resize_file(path, std::uintmax_t{1} << 24);
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const off_t hole = ::lseek(file, 0, SEEK_HOLE);
  ::close(file);
  return hole > 0 && hole < off_t{1} << 24;
}

TEST_F(HostileFeatures, HolesTakeNoMemory) {
  if (tests::heap_is_sanitized) GTEST_SKIP() << "the address space is not this program's to limit";
  const auto add_hole = [](hid_t file) {
    const Hdf5Id hole(tests::hole_properties(), H5Pclose);
    replace_dataset(file, "/contexts/bytes", H5T_NATIVE_UINT8, hsize_t{1} << 30, hole.get());
  };
  if (!reports_holes(directory_ / "sparse")) GTEST_SKIP() << "this file system does not say where files have holes";
  const tests::MemoryLimit limit(std::size_t{256} << 20);
  EXPECT_THAT(message(add_hole), MatchesRegex("F has 10[0-9]* bytes, but only [0-9]* bytes of data, and holes: it is "
                                              "damaged, or `mylos prepare` did not write it; make it again .*"));
}

TEST_F(HostileFeatures, ArraysThatAreNotInTheFileAreRefused) {
  const auto claim = [](hid_t file) {
    replace_dataset(file, "/contexts/bytes", H5T_NATIVE_UINT8, hsize_t{1} << 30, H5P_DEFAULT);
  };
  EXPECT_EQ(message(claim), "F: /contexts/bytes has shape (1073741824), but the file is too short for it");
  const auto never_written = [](hid_t file) {
    replace_dataset(file, "/contexts/bytes", H5T_NATIVE_UINT8, 100, H5P_DEFAULT);
  };
  EXPECT_EQ(message(never_written), "F: /contexts/bytes reaches beyond the file: it is truncated");
}

/// Replaces /contexts/bytes by a chunk of 64 bytes that is stored unfiltered, whatever `filter` specifies.
void store_chunk(hid_t file, const std::function<void(hid_t properties)>& filter) {
  constexpr hsize_t size = 64, origin = 0;
  const Hdf5Id properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  H5Pset_chunk(properties.get(), 1, &size);
  filter(properties.get());
  replace_dataset(file, "/contexts/bytes", H5T_NATIVE_UINT8, size, properties.get());
  const Hdf5Id dataset(H5Dopen2(file, "/contexts/bytes", H5P_DEFAULT), H5Dclose);
  const std::string bytes(size, 'a');
  ASSERT_GE(H5Dwrite_chunk(dataset.get(), H5P_DEFAULT, 0, &origin, size, bytes.data()), 0);
}

TEST_F(HostileFeatures, ChunksAndTheirFiltersAreRefused) {
  const auto refused = "F: /contexts/bytes is chunked, compact or in another file; only contiguous datasets are read";
  EXPECT_EQ(message([](hid_t file) { store_chunk(file, [](hid_t) {}); }), refused);
  EXPECT_EQ(message([](hid_t file) { store_chunk(file, [](hid_t properties) { H5Pset_deflate(properties, 9); }); }),
            refused);
}

TEST_F(HostileFeatures, OtherFilesAreNotRead) {
  const std::string other = directory_ / "other";
  tests::write_file(other, std::string(30, 'a'));
  const auto external_storage = [&](hid_t file) {
    const Hdf5Id properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    H5Pset_external(properties.get(), other.c_str(), 0, 30);
    replace_dataset(file, "/contexts/bytes", H5T_NATIVE_UINT8, 30, properties.get());
  };
  EXPECT_EQ(message(external_storage),
            "F: /contexts/bytes is chunked, compact or in another file; only contiguous datasets are read");
  write_feature_file(other, small_prepared());
  const auto external_link = [&](hid_t file) {
    H5Ldelete(file, "/contexts", H5P_DEFAULT);
    ASSERT_GE(H5Lcreate_external(other.c_str(), "/contexts", file, "/contexts", H5P_DEFAULT, H5P_DEFAULT), 0);
  };
  EXPECT_EQ(message(external_link), "F: /contexts is a soft or external link; only hard links are followed");
}

TEST_F(HostileFeatures, AnArrayThatIsLinkedTwiceIsReadOnce) {
  std::vector<std::uint8_t> values(100'000);
  std::iota(values.begin(), values.end(), 0);
  Hdf5Writer writer("other");
  writer.write<std::uint8_t>("/a", values);
  tests::write_file(path_, writer.finish());
  tests::change_hdf5(path_, [](hid_t file) { H5Lcreate_hard(file, "/a", file, "/b", H5P_DEFAULT, H5P_DEFAULT); });
  Hdf5Reader reader(path_);
  EXPECT_EQ(reader.read<std::uint8_t>("/b"), values);
  EXPECT_THAT(error_of([&] { reader.read<std::uint8_t>("/a"); }),
              HasSubstr("features.h5: /a and the arrays before it are longer than the file: some share their bytes"));
}

TEST_F(HostileFeatures, NoPluginIsLoaded) {
  read_feature_file(path_);
  unsigned kinds = ~0u;
  ASSERT_GE(H5PLget_loading_state(&kinds), 0);
  EXPECT_EQ(kinds, 0u);
}

// The file has more than 8 attributes, which HDF5 stores in a heap with a B-tree. scripts/test-faults sets
// MYLOS_EVERY_BYTE.
TEST_F(HostileFeatures, AChangedByteIsAnErrorOrChangesNothing) {
  const auto contents = [this] {
    PreparedFeatures prepared = read_feature_file(path_);
    const FeatureOptions& options = prepared.options;
    return bytes_of_value(prepared.dataset) + bytes_of_value(prepared.features) +
           fmt::format("{} {} {}", options.max_length, options.doc_stride, prepared.tokenizer.checksum);
  };
  const std::string intact = contents();
  EXPECT_THAT(tests::read_changed(path_, tests::draw_changed_bytes(path_, 200), [&] { return contents() == intact; }),
              ElementsAre());
}

}  // namespace
}  // namespace mylos::data
