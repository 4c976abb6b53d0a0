// One rank writes, and any number of ranks read. test_checkpoint_ranks.cpp has several writers.

#include "core/base/value_bytes.hpp"
#include "parallel/checkpoint/checkpoint.hpp"
#include "parallel/checkpoint/checkpoint_directory.hpp"
#include "parallel/checkpoint/checkpoint_file.hpp"
#include "parallel/checkpoint/checkpoint_layout.hpp"
#include "tests/parallel/checkpoint/saved_arrays.hpp"
#include "tests/support/file_size_limit.hpp"
#include "tests/support/hdf5_leaks.hpp"
#include "tests/support/temporary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <thread>

namespace {

std::filesystem::path unflushed;  // a directory that fsync fails to flush

}  // namespace

/// Replaces the C library's function in this program.
extern "C" int fsync(int descriptor) {
  std::error_code none;
  const auto path = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(descriptor), none);
  if (unflushed.empty() || path != std::filesystem::canonical(unflushed)) {
    return static_cast<int>(::syscall(SYS_fsync, descriptor));
  }
  errno = EIO;
  return -1;
}

namespace mylos::parallel {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using tests::error_of;
using tests::read_file;
using tests::SavedArrays;
using tests::Spread;
using tests::write_file;

class Checkpoint : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directory(checkpoints_); }

  /// Saves a checkpoint of `table` by one rank.
  fs::path save(std::size_t step, const ParameterTable& table, std::size_t salt = 0, std::size_t keep = 2) {
    SavedArrays saved(table, Spread::replicated, 0, 1);
    saved.fill(salt);
    CheckpointRecord record = tests::saved_record(step);
    record.set(save_number, ++saves_);
    return save_checkpoint(*world_, checkpoints_, step, saved.arrays(), record, keep).file;
  }

  /// Returns the error of loading a file into arrays of `table`, or "" if all values are as saved.
  std::string load_error(const fs::path& file, const ParameterTable& table, std::size_t salt = 0) {
    SavedArrays loaded(table, Spread::replicated, 0, 1);
    try {
      read_checkpoint_record(*world_, file);
      load_checkpoint(*world_, file, loaded.arrays());
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return loaded.differing(salt) == 0 ? "" : "other values";
  }

  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(checkpoints_)) found.push_back(entry.path().filename().string());
    std::ranges::sort(found);
    return found;
  }

  tests::TemporaryDirectory directory_;
  fs::path checkpoints_ = directory_ / "checkpoints";
  std::uint64_t saves_ = 0;
  std::unique_ptr<Communicator> world_ = make_self_communicator();
  ParameterTable table_ = tests::saved_table(), small_ = tests::small_table();
};

TEST(CheckpointRecord, NamesWhatIsNotThere) {
  CheckpointRecord record("some.h5");
  record.set("step", std::uint64_t{3});
  record.set("step", std::uint64_t{4});
  record.set("scale", 0.5);
  EXPECT_EQ(record.members().size(), 2u);
  const CheckpointRecord copy = value_of_bytes<CheckpointRecord>(bytes_of_value(record));
  EXPECT_EQ(copy.integer("step"), 4u);
  EXPECT_EQ(copy.real("scale"), 0.5);
  EXPECT_THAT(error_of([&] { copy.text("name"); }), HasSubstr("some.h5: /run has no name"));
  EXPECT_THAT(error_of([&] { copy.integer("scale"); }), HasSubstr("some.h5: /run/scale is not a whole number"));
  EXPECT_THROW(value_of_bytes<CheckpointRecord>("abc"), std::invalid_argument);
}

TEST_F(Checkpoint, GivesBackEveryBit) {
  const fs::path file = save(123, table_, 3);
  EXPECT_EQ(file.filename(), "step-000123.h5");
  EXPECT_EQ(load_error(file, table_, 3), "");
  const CheckpointRecord record = read_checkpoint_record(*world_, file);
  EXPECT_EQ(record.integer("step"), 123u);
  EXPECT_EQ(record.integer("seed"), 0xffffffffffffffffu);
  EXPECT_EQ(record.real("best"), 0.1);
  EXPECT_EQ(record.text("configuration"), tests::saved_record(1).text("configuration"));
  EXPECT_EQ(record.text("empty"), "");
  EXPECT_EQ(verify_checkpoint(file), (3 * table_.size() + 19) * sizeof(float));
}

TEST_F(Checkpoint, KeepsNumbersThatAreNone) {
  SavedArrays saved(small_, Spread::replicated, 0, 1), loaded(small_, Spread::replicated, 0, 1);
  const std::uint32_t bits[] = {0x7fc12345u, 0xff800000u, 0x80000000u, 1u};
  const Vector<float>& given = saved.arrays().groups[1].parts[1];
  const auto host = Kokkos::create_mirror_view(given);
  std::memcpy(host.data(), bits, sizeof bits);
  Kokkos::deep_copy(given, host);
  const auto report = save_checkpoint(*world_, checkpoints_, 1, saved.arrays(), {}, 1);
  load_checkpoint(*world_, report.file, loaded.arrays());
  const auto read = Kokkos::create_mirror_view_and_copy(HostSpace(), loaded.arrays().groups[1].parts[1]);
  EXPECT_EQ(std::memcmp(read.data(), bits, sizeof bits), 0);
  EXPECT_EQ(report.bytes, (3 * small_.size() + 2) * sizeof(float));
  EXPECT_GT(report.bytes_per_second(), 0.0);
}

// `latest` could not be updated after the newest checkpoint. Times of files are those of the clocks of several
// machines.
TEST_F(Checkpoint, ANewerCompleteOneThanLatestIsFound) {
  save(10, small_, 1);
  const fs::path latest = checkpoints_ / "latest", later = save(20, small_, 1), aside = directory_ / "aside.h5";
  write_file(latest, "step-000010.h5\n");
  fs::last_write_time(later, fs::last_write_time(latest) - std::chrono::hours(1));
  EXPECT_EQ(resolve_checkpoint(checkpoints_), later);
  fs::copy_file(later, aside);
  fs::resize_file(later, 1000);
  EXPECT_EQ(resolve_checkpoint(checkpoints_).filename(), "step-000010.h5") << "the newer one is damaged";
  save(10, small_, 2);
  EXPECT_EQ(last_save(checkpoints_), 3u);
  fs::copy_file(aside, later);
  fs::last_write_time(later, fs::last_write_time(latest) + std::chrono::hours(1));
  EXPECT_EQ(resolve_checkpoint(checkpoints_).filename(), "step-000010.h5") << "of another branch of the run";
}

TEST_F(Checkpoint, IsReadByAnyNumberOfRanks) {
  const fs::path file = save(5, table_, 1);
  for (const std::size_t ranks : {2, 3, 5, 100}) {
    for (const std::size_t rank : {std::size_t{0}, ranks / 2, ranks - 1}) {
      SavedArrays loaded(table_, Spread::sharded, rank, ranks);
      load_checkpoint(*world_, file, loaded.arrays());
      EXPECT_EQ(loaded.differing(1), 0u) << "rank " << rank << " of " << ranks;
    }
  }
}

// HDF5 with MPI hangs if a rank has nothing to write; here such a rank does not write.
TEST_F(Checkpoint, RangesAreCutWhereRanksEndAndAfterAMebibyte) {
  for (const std::size_t ranks : {1, 2, 3, 7, 1000}) {
    const SavedArrays arrays(table_, Spread::sharded, 0, ranks);
    for (const PlannedDataset& dataset : plan_datasets(arrays.arrays())) {
      std::size_t next = 0;
      for (const WrittenRange& range : written_ranges(arrays.arrays(), dataset, ranks)) {
        ASSERT_EQ(range.first, next);
        ASSERT_GT(range.count, 0u);
        ASSERT_LE(range.count, checksum_elements);
        next += range.count;
      }
      EXPECT_EQ(next, dataset.tensor->size) << dataset.shape.name;
    }
  }
}

TEST_F(Checkpoint, RangesThatOverlapOrLackAreRefused) {
  const SavedArrays saved(small_, Spread::replicated, 0, 1);
  CheckpointArrays arrays = saved.arrays();
  const auto refused = [&](std::size_t ranks, const std::string& what) {
    EXPECT_THAT(error_of([&] { written_ranges(arrays, plan_datasets(arrays).front(), ranks); }), HasSubstr(what));
  };
  arrays.saved_range = [](std::size_t, std::size_t) { return UnitRange{0, 5}; };
  refused(1, "ranks write 5 elements of unit 0, which has 18");
  refused(2, "rank 1 writes unit 0 from element 0, expected 5");
  arrays.saved_range = [](std::size_t, std::size_t) { return UnitRange{3, 18}; };
  refused(1, "rank 0 writes unit 0 from element 3, expected 0");
}

/// Changes the byte of a file at `position`.
void flip(const fs::path& file, std::uint64_t position) {
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekg(static_cast<std::streamoff>(position));
  const char byte = static_cast<char>(stream.get() ^ 0x20);
  stream.seekp(static_cast<std::streamoff>(position));
  stream.put(byte);
}

TEST_F(Checkpoint, LatestAndKeep) {
  EXPECT_EQ(find_checkpoint(*world_, directory_.path()), "");
  EXPECT_EQ(find_checkpoint(*world_, directory_ / "nowhere"), "");
  for (const std::size_t step : {10, 20, 30, 40}) save(step, small_, step);
  EXPECT_EQ(names(), (std::vector<std::string>{"latest", "step-000030.h5", "step-000040.h5"}));
  EXPECT_EQ(read_file(checkpoints_ / "latest"), "step-000040.h5\n");
  EXPECT_EQ(find_checkpoint(*world_, directory_.path()), checkpoints_ / "step-000040.h5");
  EXPECT_EQ(find_checkpoint(*world_, checkpoints_), checkpoints_ / "step-000040.h5");
  EXPECT_EQ(find_checkpoint(*world_, checkpoints_ / "step-000030.h5"), checkpoints_ / "step-000030.h5");
  // Another branch of the run from step 30: the later checkpoints of the first branch are removed.
  save(35, small_);
  EXPECT_EQ(names(), (std::vector<std::string>{"latest", "step-000030.h5", "step-000035.h5"}));
  fs::remove(checkpoints_ / "latest");
  EXPECT_EQ(find_checkpoint(*world_, checkpoints_), checkpoints_ / "step-000035.h5");
  write_file(checkpoints_ / "latest", "../../etc/passwd\n");
  EXPECT_EQ(find_checkpoint(*world_, checkpoints_), checkpoints_ / "step-000035.h5");
  EXPECT_THROW(save(36, small_, 0, 0), std::invalid_argument);
}

TEST_F(Checkpoint, DamagedOnesDoNotCountAsKept) {
  for (const std::size_t step : {10, 20, 30, 40}) save(step, small_, step, 4);
  fs::resize_file(checkpoints_ / "step-000030.h5", 1000);
  const fs::path newest = checkpoints_ / "step-000040.h5";
  flip(newest, read_checkpoint_index(newest).datasets[0].offset);
  fs::last_write_time(newest, fs::last_write_time(newest) + std::chrono::seconds(1));  // file clocks are coarse
  save(50, small_, 50, 2);
  EXPECT_EQ(names(), (std::vector<std::string>{"latest", "step-000020.h5", "step-000030.h5", "step-000040.h5",
                                               "step-000050.h5"}))
      << "20 is the last whole one before 50";
  save(60, small_, 60, 2);
  EXPECT_EQ(names(), (std::vector<std::string>{"latest", "step-000050.h5", "step-000060.h5"}));
}

TEST_F(Checkpoint, OfADamagedOneTheLastWholeOneBeforeItIsNamed) {
  for (const std::size_t step : {10, 20, 30, 40}) save(step, small_, step, 4);
  const fs::path newest = checkpoints_ / "step-000040.h5";
  EXPECT_THAT(load_error(newest, table_, 40), Not(HasSubstr("before it"))) << "of another model, but not damaged";
  flip(newest, read_checkpoint_index(newest).datasets[0].offset);
  fs::resize_file(checkpoints_ / "step-000030.h5", 1000);
  const std::string whole = (checkpoints_ / "step-000020.h5").string();
  EXPECT_THAT(load_error(newest, small_, 40),
              AllOf(HasSubstr("step-000040.h5: "), HasSubstr("CRC32C is "),
                    HasSubstr("; the earlier step-000020.h5 is intact: `resume " + whole + "` continues from it")));
  EXPECT_THAT(load_error(checkpoints_ / "step-000030.h5", small_),
              HasSubstr("; the earlier step-000020.h5 is intact: "));
  for (const char* name : {"step-000020.h5", "step-000010.h5"}) write_file(checkpoints_ / name, "no HDF5");
  EXPECT_THAT(load_error(newest, small_, 40), HasSubstr("; no earlier checkpoint is intact"));
  EXPECT_THAT(load_error(checkpoints_ / "step-000010.h5", small_), Not(HasSubstr("before it")));
}

TEST_F(Checkpoint, TheSameStepIsWrittenAgain) {
  save(7, small_, 1);
  EXPECT_EQ(load_error(save(7, small_, 2), small_, 2), "");
}

TEST_F(Checkpoint, PreparingRemovesWhatKilledSavesLeft) {
  const fs::path kept = save(1, small_);
  write_file(checkpoints_ / "step-000002.h5.tmp", "half");  // of an earlier version
  write_file(unfinished_name(checkpoints_ / "step-000003.h5"), "half");
  write_file(unfinished_name(checkpoints_ / "latest"), "half");
  write_file(checkpoints_ / ".probe-0123456789abcdef", "");
  write_file(checkpoints_ / "mine.tmp", "mine");
  prepare_checkpoints(*world_, checkpoints_, {1000}, 2);
  EXPECT_EQ(names(), (std::vector<std::string>{"latest", "mine.tmp", "step-000001.h5"}));
  EXPECT_EQ(load_error(kept, small_), "");
  prepare_checkpoints(*world_, directory_ / "run" / "checkpoints", {1000}, 2);
  EXPECT_TRUE(fs::is_directory(directory_ / "run" / "checkpoints"));
}

TEST_F(Checkpoint, PreparingRefusesWhatCannotBe) {
  const auto error = [&](const fs::path& path, std::size_t bytes) {
    return error_of([&] { prepare_checkpoints(*world_, path, {bytes}, 3); });
  };
  EXPECT_THAT(error(checkpoints_, std::size_t{1} << 55),
              HasSubstr("the 3 checkpoints that are kept and the one being written need "));
  EXPECT_THAT(error(checkpoints_, std::size_t{1} << 55), HasSubstr("B are free"));
  EXPECT_THAT(error("/proc/checkpoints", 1), HasSubstr("cannot create /proc/checkpoints"));
  write_file(directory_ / "file", "");
  EXPECT_THAT(error(directory_ / "file", 1), HasSubstr("file"));
}

TEST_F(Checkpoint, AMissingMemberIsNamed) {
  SavedArrays saved(small_, Spread::replicated, 0, 1);
  CheckpointArrays arrays = saved.arrays();
  arrays.groups.pop_back();
  const fs::path file = save_checkpoint(*world_, checkpoints_, 1, arrays, tests::saved_record(1), 2).file;
  EXPECT_THAT(load_error(file, small_), HasSubstr("step-000001.h5: has no /optimizer/v/one.weight"));
  const CheckpointRecord record = read_checkpoint_record(*world_, file);
  EXPECT_THAT(error_of([&] { record.real("loss_scale"); }), HasSubstr("step-000001.h5: /run has no loss_scale"));
  EXPECT_THAT(error_of([&] { record.text("step"); }), HasSubstr("/run/step is not a text"));
  EXPECT_TRUE(record.has("step"));
}

TEST_F(Checkpoint, AnotherModelIsNamed) {
  const fs::path file = save(1, small_);
  ParameterTable::Builder other;
  other.unit("one").tensor("one.weight", {3, 5}, {}).tensor("one.bias", {3}, {}).state("one.mean", {2}, {});
  other.unit("two").tensor("two.weight", {4}, {});
  EXPECT_THAT(
      load_error(file, other.build()),
      HasSubstr("/model/one.weight has shape (5, 3), but (3, 5) in this run: it is a checkpoint of another model"));
  ParameterTable::Builder smaller;
  smaller.unit("one").tensor("one.weight", {5, 3}, {}).tensor("one.bias", {3}, {});
  EXPECT_THAT(load_error(file, smaller.build()), HasSubstr("has /model/two.weight, which this run's model"));
}

TEST_F(Checkpoint, FilesThatAreNoCheckpointsAreRefused) {
  const fs::path file = directory_ / "file.h5";
  const auto refused = [&](const std::string& what) { EXPECT_THAT(load_error(file, small_), HasSubstr(what)); };
  refused("file.h5: No such file or directory");
  write_file(file, "");
  refused("file.h5 is not an HDF5 file");
  write_file(file, std::string(10'000, 'x'));
  refused("file.h5 is not an HDF5 file");
  fs::remove(file);
  fs::create_directory(file);
  refused("file.h5");
}

TEST_F(Checkpoint, TruncatedFilesAreRefused) {
  const fs::path file = save(1, table_);
  const std::uintmax_t size = fs::file_size(file);
  for (const std::uintmax_t left : {size - 1, size / 2, size / 100, std::uintmax_t{100}, std::uintmax_t{8}}) {
    fs::resize_file(file, left);
    EXPECT_THAT(load_error(file, table_), HasSubstr("step-000001.h5")) << left;
  }
}

TEST_F(Checkpoint, AFlippedByteIsNamed) {
  const fs::path file = save(1, table_);
  const CheckpointIndex index = read_checkpoint_index(file);
  const auto refused = [&](std::uint64_t position, const std::string& what) {
    flip(file, position);
    EXPECT_THAT(load_error(file, table_), HasSubstr(what));
    EXPECT_THAT(error_of([&] { verify_checkpoint(file); }), HasSubstr(what));
    flip(file, position);
    ASSERT_EQ(load_error(file, table_), "");
  };
  const std::uint64_t weight = index.find("/model/embeddings.weight")->offset;
  refused(weight, "step-000001.h5: /model/embeddings.weight, elements 0 to 262144: CRC32C is ");
  refused(weight + 4 * 600'000 - 1, "/model/embeddings.weight, elements 524288 to 600000: CRC32C is ");
  refused(index.find("/optimizer/v/layer.weight")->offset + 9, "/optimizer/v/layer.weight, elements 0 to 286: ");
  refused(index.find("/optimizer/m/head.bias")->offset, "/optimizer/m/head.bias, elements 0 to 1: ");
  refused(index.find("/state/head.variance")->offset + 15, "/state/head.variance, elements 0 to 4: ");
}

TEST_F(Checkpoint, NoFlippedByteGoesUnseen) {
  const fs::path file = save(1, small_);
  const std::uint64_t size = fs::file_size(file);
  std::size_t seen = 0;
  for (std::uint64_t position = 0; position < size; position += 97) {
    flip(file, position);
    const std::string error = load_error(file, small_);
    EXPECT_NE(error, "other values") << position;
    seen += !error.empty();
    EXPECT_THAT(error, AnyOf("", HasSubstr("step-000001.h5"))) << position;
    flip(file, position);
  }
  EXPECT_GT(seen, size / 97 / 4);  // the rest is unused space
}

TEST_F(Checkpoint, AFileThatMayNotGrowLeavesTheLastOne) {
  const fs::path kept = save(1, table_, 1);
  for (const rlim_t limit : {1000, 100'000, 4'000'000, 7'200'000}) {
    const tests::FileSizeLimit limited(limit);
    EXPECT_THAT(error_of([&] { save(2, table_, 2); }),
                ContainsRegex("step-000002.h5[.][0-9a-f]+[.]tmp: File too large"));
  }
  EXPECT_EQ(names(), (std::vector<std::string>{"latest", "step-000001.h5"}));
  EXPECT_EQ(load_error(find_checkpoint(*world_, checkpoints_), table_, 1), "");
  EXPECT_EQ(load_error(save(2, table_, 2), table_, 2), "");
}

TEST_F(Checkpoint, ADirectoryThatCannotBeFlushedKeepsThePredecessor) {
  save(1, small_, 1, 1);
  unflushed = checkpoints_;
  EXPECT_EQ(error_of([&] { save(2, small_, 2, 1); }), "cannot flush " + checkpoints_.string() + ": Input/output error");
  unflushed.clear();
  EXPECT_EQ(load_error(checkpoints_ / "step-000001.h5", small_, 1), "");
  save(3, small_, 3, 1);
  EXPECT_EQ(names(), (std::vector<std::string>{"latest", "step-000003.h5"}));
}

TEST_F(Checkpoint, AnErrorOfTheCheckBeforeThePublicationIsTheSaves) {
  save(1, small_, 1, 1);
  SavedArrays saved(small_, Spread::replicated, 0, 1);
  const auto refuse = [] { throw std::runtime_error("not ours"); };
  EXPECT_EQ(error_of([&] {
              save_checkpoint(*world_, checkpoints_, 2, saved.arrays(), tests::saved_record(2), 1, {}, refuse);
            }),
            "not ours");
  EXPECT_EQ(names(), (std::vector<std::string>{"latest", "step-000001.h5"}));
}

TEST_F(Checkpoint, AKillDuringASaveLeavesAWholeOne) {
  save(0, table_, 0);
  for (int round = 0; round < 3; ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      SavedArrays saved(table_, Spread::replicated, 0, 1);
      for (std::size_t step = 1;; ++step) {
        saved.fill(step);
        save_checkpoint(*world_, checkpoints_, step, saved.arrays(), tests::saved_record(step), 2);
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20 + 75 * round));
    ::kill(child, SIGKILL);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    const fs::path file = find_checkpoint(*world_, checkpoints_);
    const std::size_t step = read_checkpoint_record(*world_, file).integer("step");
    EXPECT_EQ(load_error(file, table_, step), "") << file;
    prepare_checkpoints(*world_, checkpoints_, {1}, 2);
    EXPECT_LE(names().size(), 4u);  // one more than --keep if killed before the removal
  }
}

/// Returns a program's output.
std::string output_of(const std::string& command) {
  std::string text;
  FILE* pipe = ::popen(command.c_str(), "r");
  for (int byte = 0; (byte = std::fgetc(pipe)) != EOF;) text += static_cast<char>(byte);
  return ::pclose(pipe) == 0 ? text : "";
}

TEST_F(Checkpoint, OtherProgramsReadIt) {
  if (output_of("h5dump --version 2>/dev/null").empty()) GTEST_SKIP() << "Without the tools of HDF5";
  const fs::path file = save(1, small_);
  const std::string list = output_of("h5ls -r " + file.string());
  for (const char* line : {"/model/one.weight        Dataset {5, 3}", "/optimizer/m/two.weight  Dataset {4}",
                           "/checksums/state/one.mean Dataset {1}", "/run                     Group"}) {
    EXPECT_THAT(list, HasSubstr(line));
  }
  const std::string values = output_of("h5dump -d /model/two.weight -y -w 0 " + file.string());
  EXPECT_THAT(values, HasSubstr("H5T_IEEE_F32LE"));
  EXPECT_THAT(values, HasSubstr("10000.1, 10001.1, 10002.1, 10003.1"));
  EXPECT_THAT(output_of("h5dump -a /run/step " + file.string()), HasSubstr("(0): 1"));
  EXPECT_THAT(output_of("h5dump -d /checksums/model/two.weight " + file.string()), HasSubstr("\"crc32c\""));
}

}  // namespace
}  // namespace mylos::parallel
