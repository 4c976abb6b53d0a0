// Several ranks write and read one file.

#include "parallel/checkpoint/checkpoint.hpp"
#include "parallel/checkpoint/checkpoint_directory.hpp"
#include "parallel/checkpoint/checkpoint_file.hpp"
#include "tests/parallel/checkpoint/saved_arrays.hpp"
#include "tests/support/file_size_limit.hpp"
#include "tests/support/launch.hpp"
#include "tests/support/shared_directory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <optional>

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
    if (!has_checkpoint_files()) GTEST_SKIP() << "A build without HDF5";
    directory_.emplace();
    path_ = directory_->path();
  }

  fs::path save(Communicator& ranks, std::size_t step, Spread spread) {
    SavedArrays saved(table_, spread, ranks.rank(), ranks.size());
    saved.fill(step);
    return save_checkpoint(ranks, path_, step, saved.arrays(), tests::saved_record(step), 2).file;
  }
  std::size_t differing(Communicator& ranks, const fs::path& file, std::size_t step, Spread spread) {
    SavedArrays loaded(table_, spread, ranks.rank(), ranks.size());
    load_checkpoint(ranks, file, loaded.arrays());
    return loaded.differing(step);
  }

  std::optional<tests::SharedDirectory> directory_;
  fs::path path_;
  ParameterTable table_ = tests::saved_table();
};

// Peers refuse a checkpoint of another number of ranks (DeepSpeed 2898, torchtitan 811).
TEST_F(CheckpointRanks, AnyNumberReadsWhatAnyNumberWrote) {
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
      on_first_rank(world(), [&] { return std::to_string(verify_checkpoint(file)); });
    }
  }
}

// Ranks that disagree on what is there wait for each other for ever (KempnerForge 49).
TEST_F(CheckpointRanks, OnlyTheFirstRankAsksTheFileSystem) {
  const fs::path file = save(world(), 3, Spread::sharded);
  const fs::path asked = world().rank() == 0 ? path_ : path_ / "nowhere";
  EXPECT_EQ(find_checkpoint(world(), asked), file);
  EXPECT_EQ(read_checkpoint_record(world(), world().rank() == 0 ? file : path_).integer("step"), 3u);
}

// A directory of each node's own is found out only when it is to be read (accelerate 3010).
TEST_F(CheckpointRanks, ADirectoryThatIsNotSharedIsRefused) {
  prepare_checkpoints(world(), path_, 1000, 2);
  world().barrier("test");
  EXPECT_TRUE(fs::is_empty(path_));
  world().barrier("test");
  if (world().size() == 1) return;
  const fs::path own = path_ / (world().rank() + 1 == world().size() ? "other" : "same");
  EXPECT_THAT(error_of([&] { prepare_checkpoints(world(), own, 1000, 2); }),
              AllOf(HasSubstr("rank " + std::to_string(world().size() - 1) + ": "),
                    HasSubstr("is not the directory that rank 0 writes to")));
}

// One rank that cannot write leaves the others waiting (transformers 48569).
TEST_F(CheckpointRanks, AnErrorOfOneRankIsAnErrorOfAllAndLeavesTheLastOne) {
  const fs::path kept = save(world(), 1, Spread::sharded);
  {
    std::optional<tests::FileSizeLimit> limit;
    if (world().rank() + 1 == world().size()) limit.emplace(2'000'000);
    EXPECT_THAT(error_of([&] { save(world(), 2, Spread::sharded); }), HasSubstr("step-000002.h5.tmp: File too large"));
  }
  world().barrier("test");
  EXPECT_FALSE(fs::exists(path_ / "step-000002.h5.tmp"));
  EXPECT_EQ(find_checkpoint(world(), path_), kept);
  EXPECT_EQ(differing(world(), kept, 1, Spread::replicated), 0u);
}

TEST_F(CheckpointRanks, AFlippedByteIsNamedOnEveryRank) {
  const fs::path file = save(world(), 1, Spread::replicated);
  if (world().rank() == 0) {
    const std::uint64_t place = read_checkpoint_index(file).find("/optimizer/m/embeddings.weight")->offset + 2'399'999;
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(static_cast<std::streamoff>(place));
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
