// Several ranks write and read the same file.

#include "parallel/checkpoint/checkpoint.hpp"
#include "parallel/checkpoint/checkpoint_directory.hpp"
#include "parallel/checkpoint/checkpoint_file.hpp"
#include "parallel/checkpoint/checkpoint_layout.hpp"
#include "parallel/checkpoint/checkpoint_writers.hpp"
#include "parallel/communicator/agreement.hpp"
#include "tests/parallel/checkpoint/saved_arrays.hpp"
#include "tests/support/file_size_limit.hpp"
#include "tests/support/launch.hpp"
#include "tests/support/read_counter.hpp"
#include "tests/support/shared_directory.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <mutex>
#include <optional>

namespace {

/// A write by this process.
struct Write {
  std::uint64_t offset = 0;
  std::size_t bytes = 0;
};
std::mutex writes_mutex;
std::vector<Write> writes;

}  // namespace

/// Overrides the system's function. Records writes at offsets of files that are open for writing only, like those of
/// ranks that write values. Rank 0 also reads the file, whose layout it writes.
extern "C" ssize_t pwrite(int descriptor, const void* data, size_t size, off_t offset) {
  static const auto system_pwrite = reinterpret_cast<decltype(::pwrite)*>(::dlsym(RTLD_NEXT, "pwrite"));
  const ssize_t written = system_pwrite(descriptor, data, size, offset);
  const bool is_for_writing_only = (::fcntl(descriptor, F_GETFL) & O_ACCMODE) == O_WRONLY;
  const std::lock_guard lock(writes_mutex);
  if (written > 0 && is_for_writing_only)
    writes.push_back({static_cast<std::uint64_t>(offset), static_cast<std::size_t>(written)});
  return written;
}

namespace mylos::parallel {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using tests::error_of;
using tests::SavedArrays;
using tests::Spread;

Communicator& world() { return tests::launch().world(); }

class CheckpointRanks : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_.emplace();
    path_ = directory_->path();
  }

  fs::path save(Communicator& ranks, std::size_t step, Spread spread) {
    SavedArrays saved(table_, spread, ranks.rank(), ranks.size());
    saved.fill(step);
    return save_checkpoint(ranks, path_, step, saved.arrays(), tests::saved_record(step), 2).file;
  }
  std::size_t differing(Communicator& ranks, const fs::path& file, std::size_t step, Spread spread) {
    return differing(ranks, file, step, spread, table_);
  }
  static std::size_t differing(Communicator& ranks, const fs::path& file, std::size_t step, Spread spread,
                               const ParameterTable& table) {
    SavedArrays loaded(table, spread, ranks.rank(), ranks.size());
    if (spread == Spread::replicated) loaded.share_with(ranks);
    load_checkpoint(ranks, file, loaded.arrays());
    return loaded.differing(step);
  }
  /// Saves on any number of ranks, and reads on any other.
  void expect_any_number_reads();

  std::optional<tests::SharedDirectory> directory_;
  fs::path path_;
  ParameterTable table_ = tests::saved_table();
};

void CheckpointRanks::expect_any_number_reads() {
  std::size_t step = 0;
  for (const Spread writes : {Spread::replicated, Spread::sharded}) {
    for (std::size_t writers = 1; writers <= world().size(); ++writers) {
      ++step;
      const auto writing = world().split(world().rank() < writers ? 0 : 1, world().rank());
      if (world().rank() < writers) save(*writing, step, writes);
      const fs::path file = find_checkpoint(world(), path_);
      EXPECT_EQ(file.filename(), checkpoint_file_name(step));
      for (std::size_t readers = 1; readers <= world().size(); ++readers) {
        const auto reading = world().split(world().rank() < readers ? 0 : 1, world().rank());
        if (world().rank() >= readers) continue;
        const Spread reads = (step + readers) % 2 == 0 ? Spread::replicated : Spread::sharded;
        EXPECT_EQ(differing(*reading, file, step, reads), 0u) << writers << " writers, " << readers << " readers";
      }
      EXPECT_EQ(read_checkpoint_record(world(), file).integer("step"), step);
      on_first_rank(world(), [&] { verify_checkpoint(file); });
    }
  }
}

// Peers reject a checkpoint of another number of ranks (DeepSpeed 2898, torchtitan 811).
TEST_F(CheckpointRanks, AnyNumberReadsWhatAnyNumberWrote) { expect_any_number_reads(); }

TEST_F(CheckpointRanks, AnyNumberReadsTheAdaptersThatAnyNumberWrote) {
  table_ = tests::adapted_table();
  expect_any_number_reads();
}

// Frozen values are read from a file that another number of ranks wrote, also after some of them have saved again.
TEST_F(CheckpointRanks, AnyNumberReadsTheFrozenValuesThatAnyNumberWrote) {
  table_ = tests::frozen_table();
  std::size_t step = 0;
  FrozenFile frozen;
  for (const Spread spread : {Spread::replicated, Spread::sharded}) {
    for (std::size_t ranks = 1; ranks <= world().size(); ++ranks) {
      ++step;
      const auto some = world().split(world().rank() < ranks ? 0 : 1, world().rank());
      if (world().rank() < ranks) {
        SavedArrays saved(table_, spread, some->rank(), ranks);
        saved.fill(1);
        if (step % 2 == 1) frozen = {};  // of a run that does not know the file
        saved.freeze_in(frozen);
        for (const std::size_t each : {10 * step, 10 * step + 1})
          save_checkpoint(*some, path_, each, saved.arrays(), tests::saved_record(each), 1);
      }
      const fs::path file = find_checkpoint(world(), path_);
      EXPECT_EQ(file.filename(), checkpoint_file_name(10 * step + 1));
      for (const Spread reads : {Spread::replicated, Spread::sharded})
        EXPECT_EQ(differing(world(), file, 1, reads), 0u) << ranks << " ranks wrote";
      on_first_rank(world(), [&] {
        const auto is_frozen = [](const auto& entry) { return is_frozen_file_name(entry.path().filename().string()); };
        EXPECT_EQ(std::ranges::count_if(fs::directory_iterator(path_), is_frozen), 1);
        fs::rename(path_ / frozen_file_name(10 * ((step - 1) / 2 * 2 + 1)), path_ / "elsewhere");
      });
      EXPECT_THAT(error_of([&] { differing(world(), file, 1, Spread::sharded); }),
                  HasSubstr(".h5: No such file or directory; restore frozen-"));
      on_first_rank(world(),
                    [&] { fs::rename(path_ / "elsewhere", path_ / frozen_file_name(10 * ((step - 1) / 2 * 2 + 1))); });
    }
  }
}

/// Returns a table with some tensors larger than a single write, and a few short ones.
ParameterTable long_table() {
  ParameterTable::Builder builder;
  builder.unit("one").tensor("one.weight", {3000, 1000}, {}).tensor("one.bias", {300}, {}).state("one.mean", {5}, {});
  builder.unit("two").tensor("two.weight", {1'500'001}, {}).tensor("two.other", {1'200'000}, {});
  return builder.build();
}

/// Returns the writes of this process to arrays of at least 4 MiB.
std::vector<Write> writes_to_long_arrays(const CheckpointIndex& index) {
  std::vector<Write> found;
  for (const Write& write : writes) {
    const auto is_in = [&](const CheckpointDataset& dataset) {
      return dataset.size >= written_elements && dataset.offset <= write.offset &&
             write.offset < dataset.offset + dataset.size * sizeof(float);
    };
    if (std::ranges::any_of(index.datasets, is_in)) found.push_back(write);
  }
  return found;
}

/// Returns names, checksums and values of a file, without HDF5's timestamps.
std::string content_of(const CheckpointIndex& index) {
  std::string content;
  for (const CheckpointDataset& dataset : index.datasets) {
    content += dataset.name;
    for (const ChecksumRange& range : dataset.ranges) {
      content += fmt::format(" {} {} {}", range.first, range.count, range.crc32c);
    }
    std::string values(dataset.size * sizeof(float), '\0');
    dataset.file->read(dataset.offset, std::as_writable_bytes(std::span(values)));
    content += values;
  }
  return content;
}

// A thousand processes that write to one file overload a parallel file system with locks (torchtitan 1301).
TEST_F(CheckpointRanks, AFewRanksWriteLongRangesOfAFileThatDoesNotDependOnThem) {
  const ParameterTable table = long_table();
  const std::size_t ranks = world().size();
  std::string written_by_all;
  for (const Spread spread : {Spread::sharded, Spread::replicated}) {
    SavedArrays saved(table, spread, world().rank(), ranks);
    saved.fill(1);
    for (std::size_t writers = ranks; writers > 0; --writers) {
      if (spread == Spread::replicated && writers + 1 != ranks) continue;
      const std::vector<std::size_t> writer_of = choose_writers(tests::launch().placements(), writers);
      ASSERT_EQ(count_writers(writer_of), writers);
      writes.clear();
      const fs::path file =
          save_checkpoint(world(), path_, 1, saved.arrays(), tests::saved_record(1), 2, writer_of).file;
      const CheckpointIndex index = read_checkpoint_index(file);
      const std::vector<Write> mine = writes_to_long_arrays(index);
      const bool is_writer = writer_of[world().rank()] == world().rank();
      EXPECT_TRUE(is_writer || writes.empty()) << writers;
      EXPECT_TRUE(std::ranges::all_of(mine, [](const Write& write) { return write.bytes >= (4u << 20); })) << writers;
      // In each of three groups, two writes of the longest array, and one of each of the others.
      EXPECT_EQ(sum(world(), static_cast<double>(mine.size())), 12.0) << writers;
      EXPECT_TRUE(writers == ranks || is_writer != mine.empty()) << writers;
      const std::string content = content_of(index);
      if (writers == ranks && spread == Spread::sharded) written_by_all = content;
      EXPECT_TRUE(content == written_by_all) << writers;
      EXPECT_EQ(differing(world(), file, 1, Spread::sharded, table), 0u);
      world().barrier("test");
    }
  }
}

// A thousand ranks that each read the whole file overload its servers for minutes.
TEST_F(CheckpointRanks, RanksThatHoldTheSameReadTheFileOnceAllTogether) {
  if (!tests::bytes_read()) GTEST_SKIP() << "the system does not count what is read";
  const ParameterTable table = long_table();
  SavedArrays saved(table, Spread::replicated, world().rank(), world().size());
  saved.fill(1);
  const fs::path file = save_checkpoint(world(), path_, 1, saved.arrays(), tests::saved_record(1), 2).file;
  SavedArrays loaded(table, Spread::replicated, world().rank(), world().size());
  loaded.share_with(world());
  const std::uint64_t before = *tests::bytes_read();
  load_checkpoint(world(), file, loaded.arrays());
  const std::uint64_t taken = *tests::bytes_read() - before;
  EXPECT_EQ(loaded.differing(1), 0u);
  const std::uint64_t values = checkpoint_bytes(saved.arrays()).each, elsewhere = 16 * tests::uncounted_reads;
  const double together = sum(world(), static_cast<double>(taken));
  EXPECT_GE(together, static_cast<double>(values));
  EXPECT_LE(together, static_cast<double>(values + world().size() * elsewhere));
  EXPECT_LE(taken, values / world().size() + 4 * checksum_elements * sizeof(float) + elsewhere) << "in turns";
}

// Ranks that see different files wait for each other forever (KempnerForge 49).
TEST_F(CheckpointRanks, OnlyTheFirstRankAsksTheFileSystem) {
  const fs::path file = save(world(), 3, Spread::sharded);
  const fs::path asked = world().rank() == 0 ? path_ : path_ / "nowhere";
  EXPECT_EQ(find_checkpoint(world(), asked), file);
  EXPECT_EQ(read_checkpoint_record(world(), world().rank() == 0 ? file : path_).integer("step"), 3u);
}

// Node-local directories would be discovered only when the checkpoint is read (accelerate 3010).
TEST_F(CheckpointRanks, ADirectoryThatIsNotSharedIsRefused) {
  prepare_checkpoints(world(), path_, {1000}, 2);
  world().barrier("test");
  EXPECT_TRUE(fs::is_empty(path_));
  world().barrier("test");
  if (world().size() == 1) return;
  const fs::path own = path_ / (world().rank() + 1 == world().size() ? "other" : "same");
  EXPECT_THAT(error_of([&] { prepare_checkpoints(world(), own, {1000}, 2); }),
              AllOf(HasSubstr("rank " + std::to_string(world().size() - 1) + ": "),
                    HasSubstr("is not the directory that rank 0 writes to")));
}

// A rank that cannot write would leave the others waiting (transformers 48569).
TEST_F(CheckpointRanks, AnErrorOfOneRankIsAnErrorOfAllAndLeavesTheLastOne) {
  const ParameterTable table = long_table();
  SavedArrays saved(table, Spread::sharded, world().rank(), world().size());
  saved.fill(1);
  const auto save_with = [&](std::size_t step, std::size_t writers) {
    const std::vector<std::size_t> writer_of = choose_writers(tests::launch().placements(), writers);
    return save_checkpoint(world(), path_, step, saved.arrays(), tests::saved_record(step), 2, writer_of).file;
  };
  const fs::path kept = save_with(1, world().size());
  // With fewer writers, the last rank sends to one that fails.
  for (const std::size_t writers : {world().size(), (world().size() + 1) / 2}) {
    std::optional<tests::FileSizeLimit> limit;
    const std::vector<std::size_t> writer_of = choose_writers(tests::launch().placements(), writers);
    if (world().rank() == writer_of.back()) limit.emplace(2'000'000);
    EXPECT_THAT(error_of([&] { save_with(2, writers); }),
                ::testing::ContainsRegex("step-000002.h5[.][0-9a-f]+[.]tmp: File too large"));
  }
  world().barrier("test");
  for (const auto& entry : fs::directory_iterator(path_)) EXPECT_NE(entry.path().extension(), ".tmp") << entry.path();
  EXPECT_EQ(find_checkpoint(world(), path_), kept);
  EXPECT_EQ(differing(world(), kept, 1, Spread::replicated, table), 0u);
}

TEST_F(CheckpointRanks, AFlippedByteIsNamedOnEveryRank) {
  const fs::path file = save(world(), 1, Spread::replicated);
  if (world().rank() == 0) {
    const std::uint64_t placement =
        read_checkpoint_index(file).find("/optimizer/m/embeddings.weight")->offset + 2'399'999;
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(static_cast<std::streamoff>(placement));
    stream.put('\x55');
  }
  world().barrier("test");
  EXPECT_THAT(error_of([&] { differing(world(), file, 1, Spread::sharded); }),
              AllOf(HasSubstr("/optimizer/m/embeddings.weight, elements "), HasSubstr("to 600000: CRC32C is ")));
}

TEST_F(CheckpointRanks, AMissingFileIsAnErrorOnEveryRank) {
  EXPECT_EQ(find_checkpoint(world(), path_), "");
  EXPECT_THAT(error_of([&] { differing(world(), path_ / "step-000009.h5", 1, Spread::sharded); }),
              HasSubstr("step-000009.h5: No such file or directory"));
}

}  // namespace
}  // namespace mylos::parallel
