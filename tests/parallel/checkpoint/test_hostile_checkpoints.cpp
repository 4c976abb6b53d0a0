// Valid HDF5 files that Mylos did not write, with invalid contents.

#include "core/base/files/hdf5.hpp"
#include "core/base/text/quantities.hpp"
#include "core/base/value_bytes.hpp"
#include "parallel/checkpoint/checkpoint.hpp"
#include "parallel/checkpoint/checkpoint_file.hpp"
#include "parallel/checkpoint/checkpoint_format.hpp"
#include "parallel/checkpoint/whole_checkpoints.hpp"
#include "tests/parallel/checkpoint/saved_arrays.hpp"
#include "tests/support/changed_bytes.hpp"
#include "tests/support/hdf5_changes.hpp"
#include "tests/support/memory_limit.hpp"
#include "tests/support/sanitized.hpp"
#include "tests/support/temporary.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hdf5.h>

namespace mylos::parallel {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using tests::replace_dataset;

class HostileCheckpoints : public ::testing::Test {
 protected:
  void SetUp() override {
    tests::SavedArrays saved(table_, tests::Spread::replicated, 0, 1);
    path_ = save_checkpoint(*world_, directory_.path(), 1, saved.arrays(), tests::saved_record(1), 1).file;
  }

  /// Returns the error of reading the file after `change`.
  std::string message(const std::function<void(hid_t file)>& change) {
    tests::change_hdf5(path_, change);
    return tests::error_of_file(path_, [&] { read_checkpoint_index(path_); });
  }

  tests::TemporaryDirectory directory_;
  std::unique_ptr<Communicator> world_ = make_self_communicator();
  ParameterTable table_ = tests::small_table();
  std::filesystem::path path_;
};

hid_t make_group(hid_t file, const std::string& path) {
  const Hdf5Id properties(H5Pcreate(H5P_GROUP_CREATE), H5Pclose);
  H5Pset_link_creation_order(properties.get(), H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
  return H5Gcreate2(file, path.c_str(), H5P_DEFAULT, properties.get(), H5P_DEFAULT);
}

// 7 groups, each with 40 links to the next, give 40 * 40 * ... = 1.6e11 paths.
TEST_F(HostileCheckpoints, GroupsThatShareTheirMembersEnd) {
  const auto link_groups = [](hid_t file) {
    const Hdf5Id top(make_group(file, "/model/g0"), H5Gclose);
    for (int i = 1; i < 7; ++i) {
      const std::string next = fmt::format("/g{}", i), above = i == 1 ? "/model/g0" : fmt::format("/g{}", i - 1);
      const Hdf5Id group(make_group(file, next), H5Gclose);
      for (int link = 0; link < 40; ++link) {
        H5Lcreate_hard(file, next.c_str(), file, fmt::format("{}/{}", above, link).c_str(), H5P_DEFAULT, H5P_DEFAULT);
      }
    }
  };
  EXPECT_THAT(message(link_groups), HasSubstr("bytes can hold: some have several names"));
}

TEST_F(HostileCheckpoints, AGroupThatHoldsItselfEnds) {
  const auto link_itself = [](hid_t file) {
    H5Lcreate_hard(file, "/model", file, "/model/again", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_hard(file, "/checksums/model", file, "/checksums/model/again", H5P_DEFAULT, H5P_DEFAULT);
  };
  std::string deepest = "/model";
  for (int link = 0; link < 8; ++link) deepest += "/again";
  EXPECT_EQ(message(link_itself), "F: " + deepest + " is too deep");
}

TEST_F(HostileCheckpoints, LongPathsAreRefused) {
  const std::string name(2000, 'a');
  EXPECT_EQ(message([&](hid_t file) { const Hdf5Id group(make_group(file, "/model/" + name), H5Gclose); }),
            "F: /model/" + name.substr(0, 121) + "... is longer than 1024 bytes");
}

TEST_F(HostileCheckpoints, ATableInAHoleTakesNoMemory) {
  if (tests::heap_is_sanitized) GTEST_SKIP() << "the address space is not this program's to limit";
  const auto add_holes = [](hid_t file) {
    const Hdf5Id hole(tests::hole_properties(), H5Pclose);
    const Hdf5Id old(H5Dopen2(file, "/checksums/model/one.bias", H5P_DEFAULT), H5Dclose);
    const Hdf5Id row(H5Dget_type(old.get()), H5Tclose);
    replace_dataset(file, "/model/one.bias", H5T_IEEE_F32LE, hsize_t{1} << 28, hole.get());
    replace_dataset(file, "/checksums/model/one.bias", row.get(), hsize_t{1} << 25, hole.get());
  };
  const tests::MemoryLimit limit(std::size_t{256} << 20);
  EXPECT_EQ(message(add_holes), "F: /checksums/model/one.bias: elements 0 to 0 do not follow 0: the file is damaged");
}

TEST_F(HostileCheckpoints, ADatasetThatIsLinkedTwiceIsRefused) {
  const auto link_twice = [](hid_t file) {
    const Hdf5Id hole(tests::hole_properties(), H5Pclose);
    replace_dataset(file, "/model/one.bias", H5T_IEEE_F32LE, 100'000, hole.get());
    const Hdf5Id dataset(H5Dopen2(file, "/checksums/model/one.bias", H5P_DEFAULT), H5Dclose);
    const Hdf5Id row(H5Dget_type(dataset.get()), H5Tclose);
    const ChecksumRange all{0, 100'000, 0};
    std::array<std::byte, checksum_row_bytes> bytes;
    pack_checksum_row(all, bytes);
    ASSERT_GE(H5Dwrite(dataset.get(), row.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data()), 0);
    for (const std::string group : {"/model", "/checksums/model"}) {
      H5Lcreate_hard(file, (group + "/one.bias").c_str(), file, (group + "/twin").c_str(), H5P_DEFAULT, H5P_DEFAULT);
    }
  };
  EXPECT_THAT(message(link_twice),
              HasSubstr("F: /model/twin and the arrays before it are longer than the file: some share their bytes"));
}

TEST_F(HostileCheckpoints, LinksToOtherPathsAndFilesAreRefused) {
  const auto soft = [](hid_t file) {
    H5Lcreate_soft("/model/one.bias", file, "/model/soft", H5P_DEFAULT, H5P_DEFAULT);
  };
  EXPECT_EQ(message(soft), "F: /model/soft is a soft or external link; only hard links are followed");
  const std::string other = directory_ / "other.h5";
  std::filesystem::copy_file(path_, other);
  const auto external = [&](hid_t file) {
    H5Ldelete(file, "/model", H5P_DEFAULT);
    H5Lcreate_external(other.c_str(), "/model", file, "/model", H5P_DEFAULT, H5P_DEFAULT);
  };
  EXPECT_EQ(message(external), "F: /model is a soft or external link; only hard links are followed");
}

TEST_F(HostileCheckpoints, ManyMembersAreRefused) {
  const auto add_members = [&](hid_t file) {
    const Hdf5Id run(H5Gopen2(file, "/run", H5P_DEFAULT), H5Gclose);
    for (int i = 0; i < 1025; ++i) {
      write_hdf5_attribute(run.get(), fmt::format("member{}", i).c_str(), std::uint64_t{1}, path_.string());
    }
  };
  EXPECT_EQ(message(add_members), "F: /run has 1030 members, more than the 1024 that are read");
}

/// Saves 40 tensors and 15 members, which HDF5 stores in heaps with B-trees, as it does not store those of small_table.
std::filesystem::path save_large_groups(Communicator& world, const std::filesystem::path& directory, std::size_t step) {
  ParameterTable::Builder builder;
  for (int i = 0; i < 40; ++i) builder.unit(fmt::format("layer{}", i)).tensor(fmt::format("layer{}.bias", i), {3}, {});
  const ParameterTable table = builder.build();
  tests::SavedArrays saved(table, tests::Spread::replicated, 0, 1);
  saved.fill(step);
  CheckpointArrays arrays = saved.arrays();
  arrays.groups.resize(1);
  CheckpointRecord record = tests::saved_record(step);
  for (int i = 0; i < 10; ++i) record.set(fmt::format("member{}", i), 0.5 * i);
  return save_checkpoint(world, directory, step, arrays, record, 9).file;
}

/// The bytes of record and tables that are read from `file`.
std::string read_contents(const std::filesystem::path& file) {
  const CheckpointIndex index = read_checkpoint_index(file);
  std::string text = bytes_of_value(index.record);
  for (const CheckpointDataset& dataset : index.datasets) {
    text += fmt::format("{} {} {}\n", dataset.name, shape_text(dataset.shape), dataset.offset);
    for (const ChecksumRange& range : dataset.ranges) text += fmt::format("{} {}\n", range.count, range.crc32c);
  }
  return text;
}

// MYLOS_EVERY_BYTE, which scripts/test-faults sets, changes every byte of the structures.
TEST_F(HostileCheckpoints, AChangedByteIsAnErrorThatNamesTheIntactOne) {
  const std::filesystem::path directory = directory_ / "large";
  std::filesystem::create_directory(directory);
  const std::filesystem::path earlier = save_large_groups(*world_, directory, 1);
  const std::filesystem::path file = save_large_groups(*world_, directory, 2);
  const std::string contents = read_contents(file),
                    intact = "the earlier " + earlier.filename().string() + " is intact";
  const auto read = [&] {
    try {
      read_checkpoint_record(*world_, file);
    } catch (const std::runtime_error& error) {
      if (std::string(error.what()).find(intact) == std::string::npos) return false;
      throw;
    }
    return read_contents(file) == contents;
  };
  ASSERT_TRUE(is_whole(earlier) && read());
  EXPECT_THAT(tests::read_changed(file, tests::draw_changed_bytes(file, 250), read), ElementsAre());
}

// In a heap, HDF5 has no checksum of an attribute of more than 4 KiB.
TEST_F(HostileCheckpoints, AChangedConfigurationIsRefused) {
  const std::filesystem::path file = save_large_groups(*world_, directory_.path(), 2);
  std::string bytes = tests::read_file(file);
  const std::size_t text = bytes.find("{{{{{{{{");
  ASSERT_NE(text, std::string::npos);
  bytes[text + 4000] = '7';
  tests::write_file(file, bytes);
  EXPECT_THAT(tests::error_of_file(file, [&] { read_checkpoint_index(file); }),
              ::testing::MatchesRegex("F: /run: CRC32C is [0-9a-f]*, not [0-9a-f]*: the file is damaged"));
}

TEST_F(HostileCheckpoints, AnOlderFileWithoutAChecksumOfItsRecordIsRead) {
  tests::change_hdf5(path_, [](hid_t file) { H5Adelete(file, record_checksum_attribute); });
  EXPECT_EQ(read_checkpoint_index(path_).record.integer("step"), 1u);
}

}  // namespace
}  // namespace mylos::parallel
