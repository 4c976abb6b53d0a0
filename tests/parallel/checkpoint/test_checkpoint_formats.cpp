// HDF5 files that are not checkpoints, or that this version cannot read. For damaged files see test_checkpoint.cpp.

#include "core/base/files/hdf5.hpp"
#include "parallel/checkpoint/checkpoint.hpp"
#include "parallel/checkpoint/checkpoint_file.hpp"
#include "parallel/checkpoint/checkpoint_format.hpp"
#include "tests/parallel/checkpoint/saved_arrays.hpp"
#include "tests/support/temporary.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <hdf5.h>

namespace mylos::parallel {
namespace {

namespace fs = std::filesystem;

class CheckpointFormats : public ::testing::Test {
 protected:
  void SetUp() override {
    tests::SavedArrays saved(table_, tests::Spread::replicated, 0, 1);
    file_ = save_checkpoint(*world_, directory_.path(), 1, saved.arrays(), tests::saved_record(1), 1).file;
  }

  /// Replaces an attribute's value.
  template <class Value>
  void change(const char* attribute, const Value& value) {
    const Hdf5Id access(hdf5_access_properties(), H5Pclose);
    const Hdf5Id file(H5Fopen(file_.c_str(), H5F_ACC_RDWR, access.get()), H5Fclose);
    ASSERT_TRUE(file.is_valid());
    ASSERT_GE(H5Adelete(file.get(), attribute), 0);
    write_hdf5_attribute(file.get(), attribute, value, file_.string());
  }

  /// Expects this error from every use of the file.
  void expect_refused(const std::string& message) {
    tests::SavedArrays loaded(table_, tests::Spread::replicated, 0, 1);
    EXPECT_EQ(tests::error_of([&] { read_checkpoint_record(*world_, file_); }), message);
    EXPECT_EQ(tests::error_of([&] { load_checkpoint(*world_, file_, loaded.arrays()); }), message);
    EXPECT_EQ(tests::error_of([&] { verify_checkpoint(file_); }), message);
  }

  tests::TemporaryDirectory directory_;
  std::unique_ptr<Communicator> world_ = make_self_communicator();
  ParameterTable table_ = tests::small_table();
  fs::path file_;
};

TEST_F(CheckpointFormats, ANewerOneIsNamedWithBothVersions) {
  change(version_attribute, checkpoint_format_version + 1);
  expect_refused(fmt::format("{}: checkpoint format {}, this version reads up to {}; use a newer Mylos", file_.string(),
                             checkpoint_format_version + 1, checkpoint_format_version));
}

TEST_F(CheckpointFormats, AnotherKindOfOurFilesIsNone) {
  change(format_attribute, std::string_view("mylos features"));
  expect_refused(file_.string() + " is an HDF5 file, but not a checkpoint of Mylos");
}

TEST_F(CheckpointFormats, AnotherProgramsHdf5FileIsNone) {
  fs::remove(file_);
  {
    const Hdf5Id file(H5Fcreate(file_.c_str(), H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT), H5Fclose);
    const Hdf5Id group(H5Gcreate2(file.get(), "model", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Gclose);
    ASSERT_TRUE(group.is_valid());
  }
  expect_refused(file_.string() + " is an HDF5 file, but not a checkpoint of Mylos");
}

}  // namespace
}  // namespace mylos::parallel
